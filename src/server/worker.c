/* worker.c - a queue and a thread: see worker.h. */
#include "server/worker.h"

#include "base/status.h"

/* With the lock. */
static exchange *wait_for_job(worker *self)
{
    while (!self->is_ending && !self->first) {
        (void)pthread_cond_wait(&self->news, &self->lock);
    }
    exchange *job = self->is_ending ? NULL : self->first;
    if (job) {
        self->first = job->next_job;
        self->last = self->first ? self->last : NULL;
    }
    return job;
}

static void *work(void *user)
{
    worker *self = user;
    exchange *job = NULL;
    (void)pthread_mutex_lock(&self->lock);
    while ((job = wait_for_job(self)) != NULL) {
        (void)pthread_mutex_unlock(&self->lock);
        exchange_prepare(job);
        (void)pthread_mutex_lock(&self->lock);
        job->next_job = self->done;
        self->done = job;
        loop_wake(self->loop);
    }
    (void)pthread_mutex_unlock(&self->lock);
    return NULL;
}

mla_status worker_open(worker *self, loop *on, mla_error *err)
{
    *self = (worker){.loop = on};
    (void)pthread_mutex_init(&self->lock, NULL);
    (void)pthread_cond_init(&self->news, NULL);
    int number = pthread_create(&self->thread, NULL, work, self);
    if (number != 0) {
        (void)pthread_mutex_destroy(&self->lock);
        (void)pthread_cond_destroy(&self->news);
        return mlai_fail_errno(err, MLA_ERR_NO_MEMORY, number, MLAI_HERE,
                               "the server's worker thread cannot be started");
    }
    self->is_open = true;
    return MLA_OK;
}

void worker_close(worker *self)
{
    if (!self->is_open) {
        return;
    }
    (void)pthread_mutex_lock(&self->lock);
    self->is_ending = true;
    (void)pthread_cond_signal(&self->news);
    (void)pthread_mutex_unlock(&self->lock);
    (void)pthread_join(self->thread, NULL);
    (void)pthread_mutex_destroy(&self->lock);
    (void)pthread_cond_destroy(&self->news);
    self->is_open = false;
}

void worker_add(worker *self, exchange *job)
{
    (void)pthread_mutex_lock(&self->lock);
    job->next_job = NULL;
    if (self->last) {
        self->last->next_job = job;
    } else {
        self->first = job;
    }
    self->last = job;
    (void)pthread_cond_signal(&self->news);
    (void)pthread_mutex_unlock(&self->lock);
}

/* With the lock. */
static bool unlink_job(worker *self, exchange *job)
{
    exchange *before = NULL;
    for (exchange *at = self->first; at; before = at, at = at->next_job) {
        if (at != job) {
            continue;
        }
        if (before) {
            before->next_job = job->next_job;
        } else {
            self->first = job->next_job;
        }
        self->last = self->last == job ? before : self->last;
        return true;
    }
    return false;
}

bool worker_remove(worker *self, exchange *job)
{
    (void)pthread_mutex_lock(&self->lock);
    bool was_there = unlink_job(self, job);
    (void)pthread_mutex_unlock(&self->lock);
    return was_there;
}

exchange *worker_take_done(worker *self)
{
    exchange *list = NULL;
    (void)pthread_mutex_lock(&self->lock);
    exchange *at = self->done;
    self->done = NULL;
    (void)pthread_mutex_unlock(&self->lock);
    while (at) {
        exchange *next = at->next_job;
        at->next_job = list;
        list = at;
        at = next;
    }
    return list;
}
