// The place of the graph, which the page's script fills, and what it is filled with.
#include "report/page.h"

void report_page_explorer(report_page *page)
{
    const psi_run *run = page->run;
    report_text *html = &page->html;
    report_put(html, "<section id=\"explorer\" aria-labelledby=\"explorer-title\">"
                     "<h2 id=\"explorer-title\">Walk around in it</h2>\n");
    if (!run->model) {
        report_put(html, "<p>A graph needs the latent model, which needs the data, which are not "
                         "there.</p>\n</section>\n");
        return;
    }
    if (!report_graph_fits(run)) {
        report_put(html, "<p>There are too many latent states and actions for a graph in a page; "
                         "the table has them.</p>\n</section>\n");
        return;
    }
    report_put(
        html,
        "<p>A circle is a latent state, an arrow says where actions lead (with "
        "probability, where not certain); an orange arrow earns something. The double "
        "circle is the end of an episode. A dashed red outline marks what the verdict "
        "leaves open.</p>\n<p class=\"static-note\">The graph needs JavaScript; all it shows is "
        "in the <a href=\"#states-title\">table of latent states</a>, too.</p>"
        "\n<div id=\"explorer-place\" hidden></div>\n</section>\n");
    const report_graph graph = {.run = run,
                                .action_names = page->action_names,
                                .plan = page->plan,
                                .sizes = page->sizes,
                                .sure = page->sure,
                                .compared = page->comparison ? page->comparison->fate : NULL};
    report_graph_put(&graph, "graph-data", html);
}
