// The latent MDP as the page carries it: rows of (state, action), compressed.

export class Model {
  constructor(raw) {
    Object.assign(this, raw); // states, actions, names, size, value, policy, sure, reward, …
    this.ends = new Set(raw.terminal);
    this.offset = [0];
    for (const count of raw.count) this.offset.push(this.offset[this.offset.length - 1] + count);
  }

  action(a) {
    return this.names ? this.names[a] : String(a);
  }

  seen(k, a) {
    return this.count[k * this.actions + a] > 0;
  }

  // [next, probability] of a pair, the most probable first as written
  leads(k, a) {
    const row = k * this.actions + a;
    const found = [];
    for (let i = this.offset[row]; i < this.offset[row + 1]; i++) found.push([this.next[i], this.p[i]]);
    return found;
  }

  // Arrows between latent states: all actions that lead from one to another share one. `only`
  // restricts them to an action, `best` to the optimal policy.
  arrows(only = -1, best = false) {
    const made = new Map();
    for (let k = 0; k < this.states; k++) {
      for (let a = 0; a < this.actions; a++) {
        if ((only >= 0 && a !== only) || (best && this.policy[k] !== a)) continue;
        const row = k * this.actions + a;
        for (let i = this.offset[row]; i < this.offset[row + 1]; i++) {
          const key = k * this.states + this.next[i];
          let arrow = made.get(key);
          if (!arrow) {
            arrow = { from: k, to: this.next[i], by: [], p: 0, reward: 0, best: false };
            made.set(key, arrow);
          }
          arrow.by.push([a, this.p[i]]);
          arrow.p = Math.max(arrow.p, this.p[i]);
          if (Math.abs(this.reward[row]) > Math.abs(arrow.reward)) arrow.reward = this.reward[row];
          arrow.best = arrow.best || this.policy[k] === a;
        }
      }
    }
    return [...made.values()];
  }

  // The largest reward that some action earns in k.
  earns(k) {
    let best = 0;
    for (let a = 0; a < this.actions; a++) {
      const reward = this.reward[k * this.actions + a];
      if (Math.abs(reward) > Math.abs(best)) best = reward;
    }
    return best;
  }
}

export function words(model, arrow) {
  const listed = arrow.by.slice(0, 5).map(([a, p]) =>
    model.action(a) + (p < 0.995 ? ` (${p < 0.005 ? "<1" : Math.round(100 * p)} %)` : ""));
  let text = listed.join(", ") + (arrow.by.length > 5 ? ", …" : "");
  if (Math.abs(arrow.reward) >= 0.005) text += `\nreward ${Number(arrow.reward.toPrecision(3))}`;
  return text;
}
