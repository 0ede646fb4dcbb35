"use strict";
// Sorting and filtering of the table of latent states, and a slider over the refinements. The page
// says everything without it.
(function () {
  var PALETTE = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442", "#8c8c8c"];

  function colour(k) {
    if (k < 0) return "transparent";
    if (k < PALETTE.length) return PALETTE[k];
    return "hsl(" + Math.round((k * 137.508) % 360) + " 55% " + (k % 2 ? 45 : 62) + "%)";
  }

  function element(name, text, parent) {
    var made = document.createElement(name);
    if (text) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  }

  function share(part, whole) {
    return (100 * part / whole).toFixed(2) + " %";
  }

  function table() {
    var states = document.getElementById("states");
    if (!states) return;
    var body = states.tBodies[0], rows = Array.prototype.slice.call(body.rows);
    var find = document.getElementById("find"), rewarding = document.getElementById("rewarding");
    var shown = document.getElementById("shown");

    function filter() {
      var wanted = find.value.trim(), count = 0;
      rows.forEach(function (row) {
        var keep = (!wanted || row.dataset.k.indexOf(wanted) === 0) &&
          (!rewarding || !rewarding.checked || Number(row.dataset.reward) !== 0);
        row.hidden = !keep;
        row.style.display = keep ? "" : "none";
        count += keep ? 1 : 0;
      });
      shown.textContent = count === rows.length ? rows.length + " latent states"
        : count + " of " + rows.length + " latent states";
    }

    function sort(head) {
      var key = head.dataset.sort;
      var down = head.getAttribute("aria-sort") !== "descending";
      Array.prototype.forEach.call(states.tHead.rows[0].cells, function (cell) {
        cell.removeAttribute("aria-sort");
      });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort(function (a, b) {
        var difference = Number(a.dataset[key]) - Number(b.dataset[key]);
        return (down ? -difference : difference) || Number(a.dataset.k) - Number(b.dataset.k);
      });
      rows.forEach(function (row) { body.appendChild(row); });
    }

    Array.prototype.forEach.call(states.tHead.rows[0].cells, function (head) {
      if (!head.dataset.sort) return;
      var button = element("button", head.textContent);
      button.type = "button";
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () { sort(head); });
    });
    find.addEventListener("input", filter);
    if (rewarding) rewarding.addEventListener("change", filter);
    document.getElementById("controls").hidden = false;
    shown.textContent = rows.length + " latent states";
  }

  function paint(canvas, points, labels, stage) {
    var size = canvas.width, pen = canvas.getContext("2d"), margin = 14;
    var low = [Infinity, Infinity], high = [-Infinity, -Infinity];
    for (var i = 0; i < points.length; i++) {
      low[i % 2] = Math.min(low[i % 2], points[i]);
      high[i % 2] = Math.max(high[i % 2], points[i]);
    }
    function place(value, axis) {
      var wide = high[axis] - low[axis] || 1;
      return margin + (value - low[axis]) / wide * (size - 2 * margin);
    }
    pen.clearRect(0, 0, size, size);
    labels.forEach(function (label, at) {
      pen.fillStyle = label < 0 ? "#888" : colour(stage.to[label]);
      pen.beginPath();
      pen.arc(place(points[2 * at], 0), size - place(points[2 * at + 1], 1), label < 0 ? 2 : 4.5, 0, 7);
      pen.fill();
    });
  }

  function stages() {
    var source = document.getElementById("refinement-data"), box = document.getElementById("stages");
    if (!source || !box) return;
    var data = JSON.parse(source.textContent), last = data.stages.length - 1;
    var label = element("label", "", box), name = element("b", "", label);
    name.id = "stage-name";
    var slider = element("input", "", label);
    slider.type = "range";
    slider.id = "stage";
    slider.min = 0;
    slider.max = last;
    slider.value = last;
    var strip = element("div", "", box), list, canvas;
    strip.className = "strip";
    if (data.points) {
      canvas = element("canvas", "", box);
      canvas.width = canvas.height = 640;
      canvas.setAttribute("role", "img");
    }
    list = element("ul", "", box);

    function show() {
      var at = Number(slider.value), stage = data.stages[at];
      var order = stage.sizes.map(function (_, k) { return k; });
      order.sort(function (a, b) { return stage.to[a] - stage.to[b] || a - b; });
      var text = stage.name + ": " + stage.sizes.length + " latent states" +
        (stage.ignored ? ", " + share(stage.ignored, stage.looked_at) + " of the observations ignored" : "");
      name.textContent = text;
      slider.setAttribute("aria-valuetext", text);
      strip.textContent = list.textContent = "";
      strip.className = order.length > 150 ? "strip many" : "strip";
      order.forEach(function (k) {
        var part = element("i", "", strip);
        part.style.width = 100 * stage.sizes[k] / data.n + "%";
        part.style.background = colour(stage.to[k]);
        part.title = k + ": " + share(stage.sizes[k], data.n);
      });
      order.sort(function (a, b) { return stage.sizes[b] - stage.sizes[a]; });
      order.slice(0, 24).forEach(function (k) {
        var item = element("li", "", list), mark = element("i", "", item);
        mark.style.background = colour(stage.to[k]);
        item.appendChild(document.createTextNode(k + ": " + share(stage.sizes[k], data.n) +
          (stage.from.length ? ", from " + (stage.from[k] < 0 ? "ignored" : stage.from[k]) : "")));
      });
      if (order.length > 24) element("li", "and " + (order.length - 24) + " smaller ones", list);
      if (canvas) {
        paint(canvas, data.points, data.labels[at], stage);
        canvas.setAttribute("aria-label", "observations at " + text);
      }
    }

    slider.addEventListener("input", show);
    box.hidden = false;
    show();
  }

  table();
  stages();
})();
