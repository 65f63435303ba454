/* last_words.h - what the program says where no command can: output that nobody takes, and
 * files that change while they are mapped. */
#ifndef MLA_CLI_LAST_WORDS_H
#define MLA_CLI_LAST_WORDS_H

/* Once, at the start. Then an end with output that could not be written is a failure with
 * one line, a reader that left is no different from a full disk, and so is a mapped file
 * that became shorter. */
void last_words_arrange(void);

#endif
