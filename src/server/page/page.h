/* page.h - the page at `/`, as it lies in index.html. */
#ifndef MLA_SERVER_PAGE_PAGE_H
#define MLA_SERVER_PAGE_PAGE_H

extern const char server_page_text[]; /* ends with a NUL */

/* Its header fields, each line with CR LF: a Content-Security-Policy that lets its own script
 * and style be, by their hashes, and nothing else. */
extern const char server_page_fields[];

#endif
