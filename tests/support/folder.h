/* folder.h - folders of a test's own under /tmp. */
#ifndef TEST_FOLDER_H
#define TEST_FOLDER_H

/* path: "/tmp/NAME-XXXXXX", whose end becomes what makes it new. Fails the program where none
 * can be made. */
void folder_make(char *path);
void folder_drop(const char *path); /* with the files in it */

#endif
