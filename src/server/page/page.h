/* page.h - the page at `/`, as it lies in index.html. */
#ifndef MLA_SERVER_PAGE_PAGE_H
#define MLA_SERVER_PAGE_PAGE_H

extern const char server_page_text[]; /* ends with a NUL */

#endif
