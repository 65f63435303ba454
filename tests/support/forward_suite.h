/* forward_suite.h - what must not change a bit of a row of a forward pass: how a prompt is
 * cut, which pages it lies in, who shares the batch, how many threads there are. And what
 * must not happen after preparation: an allocation. */
#ifndef TEST_FORWARD_SUITE_H
#define TEST_FORWARD_SUITE_H

/* dir: a checkpoint of at least 512 positions. Returns a program's exit status. */
int forward_suite(const char *dir);

#endif
