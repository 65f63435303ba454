/* worker.h - the thread that prepares requests: JSON, chat template and tokens take longer than
 * the loop may be away. */
#ifndef MLA_SERVER_WORKER_H
#define MLA_SERVER_WORKER_H

#include <pthread.h>

#include "server/exchange.h"

typedef struct worker {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t news;
    exchange *first, *last; /* the queue */
    exchange *done;         /* the latest first */
    bool is_ending, is_open;
    loop *loop; /* woken after each */
} worker;

mla_status worker_open(worker *self, loop *on, mla_error *err);
/* Ends after the exchange that it has in its hands; the queue stays. {0} is allowed. */
void worker_close(worker *self);

void worker_add(worker *self, exchange *job);
bool worker_remove(worker *self, exchange *job); /* false: it is in its hands, or done */
exchange *worker_take_done(worker *self);        /* a list, in the order of the queue */

#endif
