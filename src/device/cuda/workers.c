/* workers.c - forking, watching and ending compilers: see workers.h. */
#include "device/cuda/workers.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

/* What a worker leaves; in shared memory. */
typedef struct result {
    _Atomic int is_done; /* last: what was not finished does not count */
    mla_error error;
    size_t image_bytes;
    char image[MLAI_IMAGE_MAX_BYTES];
} result;

typedef struct worker {
    pid_t pid; /* 0: idle */
    int32_t index;
    int64_t end_ns;
    result *result;
} worker;

typedef struct crew {
    const mlai_workers *how;
    const mlai_compilation *compilation;
    worker worker[MLAI_MAX_WORKERS];
} crew;

size_t mlai_workers_bytes(int32_t num_workers)
{
    return (size_t)num_workers * sizeof(result);
}

/* ------------------------------------------------------------- in the child */

/* The first line of the log that says "error", else its first line. */
static void quote_log(const mlai_nvrtc *nvrtc, mlai_nvrtc_program program, result *out)
{
    size_t bytes = 0;
    const size_t room = sizeof out->image - 1;
    if (nvrtc->nvrtcGetProgramLogSize(program, &bytes) != 0 || bytes == 0 || bytes > room ||
        nvrtc->nvrtcGetProgramLog(program, out->image) != 0) {
        return;
    }
    out->image[bytes] = '\0';
    const char *line = strstr(out->image, "error");
    while (line && line > out->image && line[-1] != '\n') {
        line--;
    }
    line = line ? line : out->image;
    (void)mlai_fail(&out->error, MLA_ERR_INTERNAL, MLAI_HERE, "%.*s",
                    (int)strcspn(line, "\n"), line);
}

static mla_status compile(const mlai_nvrtc *nvrtc, const mlai_compilation *what,
                          result *out)
{
    mlai_nvrtc_program program = NULL;
    mla_error *err = &out->error;
    int code = nvrtc->nvrtcCreateProgram(&program, what->source, what->name, 0, NULL, NULL);
    MLAI_CHECK(code == 0, MLA_ERR_INTERNAL, "nvrtcCreateProgram gave error %d", code);
    code = nvrtc->nvrtcCompileProgram(program, what->num_options, what->options);
    if (code != 0) {
        (void)MLAI_FAIL(MLA_ERR_INTERNAL, "nvrtcCompileProgram gave error %d", code);
        quote_log(nvrtc, program, out);
        return MLA_ERR_INTERNAL;
    }
    code = nvrtc->nvrtcGetCUBINSize(program, &out->image_bytes);
    MLAI_CHECK(code == 0, MLA_ERR_INTERNAL, "nvrtcGetCUBINSize gave error %d", code);
    MLAI_CHECK(out->image_bytes > 0 && out->image_bytes <= sizeof out->image,
               MLA_ERR_INTERNAL, "its image has %zu bytes, and %zu is the most",
               out->image_bytes, sizeof out->image);
    code = nvrtc->nvrtcGetCUBIN(program, out->image);
    MLAI_CHECK(code == 0, MLA_ERR_INTERNAL, "nvrtcGetCUBIN gave error %d", code);
    return MLA_OK;
}

/* The caller's handlers and files are not this process's business, and it must not outlive
 * the caller. Ctrl-C reaches the whole group: the caller decides what it means. */
static void settle_in(pid_t parent)
{
    static const int signals[] = {SIGSEGV, SIGBUS,  SIGILL, SIGFPE,
                                  SIGABRT, SIGTERM, SIGQUIT};
    (void)signal(SIGINT, SIG_IGN);
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        (void)signal(signals[i], SIG_DFL);
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) {
        (void)raise(SIGKILL);
    }
    (void)close_range(STDERR_FILENO + 1, ~0U, 0);
}

static _Noreturn void work(const crew *c, const worker *w, pid_t parent)
{
    settle_in(parent);
    result *out = w->result;
    out->error.status = compile(c->how->nvrtc, &c->compilation[w->index], out);
    out->is_done = 1;
    _exit(0);
}

/* ------------------------------------------------------------ in the parent */

static mla_status start(crew *c, worker *w, int32_t index, mla_error *err)
{
    enum { DEFAULT_TIMEOUT_S = 120 };
    const int64_t default_ns = DEFAULT_TIMEOUT_S * INT64_C(1000000000);
    pid_t parent = getpid();
    memset(w->result, 0, offsetof(result, image));
    w->index = index;
    w->end_ns = mlai_now_ns() + (c->how->timeout_ns > 0 ? c->how->timeout_ns : default_ns);
    pid_t pid = fork();
    if (pid < 0) {
        return mlai_fail_errno(err, MLA_ERR_NO_MEMORY, errno, MLAI_HERE,
                               "no process to compile %s in", c->compilation[index].name);
    }
    if (pid == 0) {
        work(c, w, parent);
    }
    w->pid = pid;
    return MLA_OK;
}

static void stop(worker *w)
{
    int ignored;
    if (w->pid > 0 && waitpid(w->pid, &ignored, WNOHANG) == 0) {
        (void)kill(w->pid, SIGKILL);
        while (waitpid(w->pid, &ignored, 0) < 0 && errno == EINTR) {
        }
    }
    w->pid = 0;
}

static mla_status judge(const crew *c, const worker *w, int wait_status, mla_error *err)
{
    const char *name = c->compilation[w->index].name;
    result *r = w->result;
    if (!r->is_done) {
        MLAI_CHECK(!WIFSIGNALED(wait_status), MLA_ERR_INTERNAL,
                   "the process that compiled %s was killed by signal %d", name,
                   WTERMSIG(wait_status));
        return MLAI_FAIL(MLA_ERR_INTERNAL,
                         "the process that compiled %s ended without a result", name);
    }
    if (r->error.status != MLA_OK) {
        r->error.message[sizeof r->error.message - 1] = '\0';
        return MLAI_FAIL(MLA_ERR_INTERNAL, "%s does not compile: %s", name,
                         r->error.message);
    }
    MLAI_CHECK(r->image_bytes > 0 && r->image_bytes <= sizeof r->image, MLA_ERR_INTERNAL,
               "the process that compiled %s gave back nonsense", name);
    return c->how->take(c->how->user, w->index, r->image, r->image_bytes, err);
}

/* Looks once. *has_ended: and what it left is taken. */
static mla_status look(crew *c, worker *w, bool *has_ended, mla_error *err)
{
    int wait_status = 0;
    pid_t got = waitpid(w->pid, &wait_status, WNOHANG);
    *has_ended = got == w->pid || (got < 0 && errno == ECHILD);
    if (*has_ended) {
        w->pid = 0; /* ECHILD: somebody else has waited for it */
        return judge(c, w, got < 0 ? 0 : wait_status, err);
    }
    MLAI_CHECK(mlai_now_ns() < w->end_ns, MLA_ERR_TIMEOUT,
               "the process that compiles %s hangs and was killed",
               c->compilation[w->index].name);
    return MLA_OK;
}

/* One round: starts what can be started, looks at what runs. */
static mla_status attend_to(crew *c, int32_t num, int32_t *num_started, int32_t *num_done,
                            mla_error *err)
{
    for (int32_t i = 0; i < c->how->num_workers; i++) {
        worker *w = &c->worker[i];
        bool has_ended = false;
        if (w->pid == 0 && *num_started < num) {
            MLAI_TRY(start(c, w, *num_started, err));
            ++*num_started;
        }
        if (w->pid != 0) {
            MLAI_TRY(look(c, w, &has_ended, err));
            *num_done += has_ended;
        }
    }
    return c->how->keep_on(c->how->user, err);
}

static mla_status run_crew(crew *c, int32_t num, mla_error *err)
{
    const struct timespec pause = {.tv_nsec = 2000000};
    int32_t num_started = 0;
    int32_t num_done = 0;
    mla_status status = MLA_OK;
    while (status == MLA_OK && num_done < num) {
        status = attend_to(c, num, &num_started, &num_done, err);
        if (status == MLA_OK && num_done < num) {
            (void)nanosleep(&pause, NULL);
        }
    }
    for (int32_t i = 0; i < c->how->num_workers; i++) {
        stop(&c->worker[i]);
    }
    return status;
}

mla_status mlai_workers_run(const mlai_workers *workers,
                            const mlai_compilation *compilation, int32_t num,
                            mla_error *err)
{
    crew c = {.how = workers, .compilation = compilation};
    if (num == 0) {
        return MLA_OK;
    }
    const size_t bytes = mlai_workers_bytes(workers->num_workers);
    MLAI_TRY(mlai_ledger_book(workers->ledger, MLA_SPACE_HOST, MLA_FOR_SESSION,
                              (int64_t)bytes, "the results of compilers", err));
    result *results =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    mla_status status = MLA_OK;
    if (results == MAP_FAILED) {
        status = mlai_fail_errno(err, MLA_ERR_NO_MEMORY, errno, MLAI_HERE,
                                 "no shared memory for the results of compilers");
    } else {
        for (int32_t i = 0; i < workers->num_workers; i++) {
            c.worker[i].result = &results[i];
        }
        status = run_crew(&c, num, err);
        (void)munmap(results, bytes);
    }
    (void)mlai_ledger_book(workers->ledger, MLA_SPACE_HOST, MLA_FOR_SESSION,
                           -(int64_t)bytes, "the results of compilers", NULL);
    return status;
}
