// The figures of the page.
#ifndef PSI_REPORT_FIGURES_H
#define PSI_REPORT_FIGURES_H

#include "report/page.h"

// Draws what fits the run into page->figures and shows it. Without gnuplot the page says so.
psi_status report_page_pictures(report_page *page);

#endif
