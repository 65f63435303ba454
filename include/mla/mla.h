/* mla.h - dense Multi-head Latent Attention over a paged latent KV cache.
 *
 *   context ──► session ──► plan ──► binding ──► run / record / replay
 *   (device)    (mutable)   (frozen)  (+ your     (no allocation,
 *                                      buffers)    no synchronisation)
 *
 * Shape letters used below. All arrays are row-major, innermost dimension last.
 *   B  requests in a batch            H  query heads held by this rank
 *   Q  query tokens of all requests   D  latent width (value width), e.g. 512
 *   N  pages in the KV pool           R  rotary width,               e.g. 64
 *   P  tokens in a page               T  page slots per request in the block table
 *
 * Units, by name: *_bytes is bytes, *_stride is elements, num_* is a count now,
 * max_* is a promise not to exceed, *_ns is nanoseconds.
 *
 * Ownership words. Every pointer parameter below carries one of them; an object of this
 * library that a call works on, an out struct and `err` are read or filled during the
 * call only, and that is not said again.
 *   read      used during the call only; the library keeps nothing.
 *   borrowed  the library keeps the pointer; you keep the memory alive and in
 *             place until the call named beside it.
 *   owned     you own the result and release it with the call named beside it.
 *   consumed  on MLA_OK the library takes the object and sets your pointer to
 *             NULL; on any other status it is still yours, unchanged.
 *
 * Threads: a context and a plan may be used from any thread. A session and a
 * binding belong to one thread at a time. Nothing here uses thread-local state.
 *
 * Failure: every function that can fail returns mla_status and writes its out
 * parameters only on MLA_OK. `err` may always be NULL.
 */
#ifndef MLA_MLA_H
#define MLA_MLA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MLA_VERSION_MAJOR 0
#define MLA_VERSION_MINOR 1
#define MLA_VERSION_PATCH 0

#if defined(__GNUC__)
#define MLA_API        __attribute__((visibility("default")))
#define MLA_MUST_CHECK __attribute__((warn_unused_result))
#else
#define MLA_API
#define MLA_MUST_CHECK
#endif

/* Sized structs. Every struct that a caller fills starts with struct_size and is
 * born from MLA_INIT: `mla_caps caps = MLA_INIT(mla_caps);`. Zero means
 * "default" for every field that says so and for every field added later. A
 * larger struct from a newer header is accepted if its unknown tail is zero. A
 * smaller one, from an older header or cut short by hand, is accepted down to the
 * end of the fields that have no default; what is missing reads as zero, and an out
 * struct is filled only as far as it reaches. No public struct has padding, so a new
 * field always changes its size; arrays in them have room to grow. */
#ifdef __cplusplus
} /* templates need C++ linkage */
template <class T> inline T mla_init_of()
{
    T value = T();
    value.struct_size = sizeof(T);
    return value;
}
extern "C" {
#define MLA_INIT(type) mla_init_of<type>()
#else
#define MLA_INIT(type)                                                                     \
    {                                                                                      \
        .struct_size = sizeof(type)                                                        \
    }
#endif

/* ------------------------------------------------------------------ errors */

/* X(name, value, text). Values are stable from 1.0; new ones go at the end. */
#define MLA_STATUS_MAP(X)                                                                  \
    X(OK, 0, "success")                                                                    \
    X(ERR_ARGUMENT, 1, "an argument breaks its documented rule")                           \
    X(ERR_STATE, 2, "the object is not in a state that allows this call")                  \
    X(ERR_UNSUPPORTED, 3, "no implementation for this request on this device")             \
    X(ERR_NO_MEMORY, 4, "an allocation failed or would pass the memory limit")             \
    X(ERR_BUFFER_SMALL, 5, "a caller's buffer is smaller than required")                   \
    X(ERR_CORRUPT, 6, "stored or imported bytes are not what they should be")              \
    X(ERR_DEVICE, 7, "the device or its driver failed; the context is dead")               \
    X(ERR_PEER, 8, "another rank failed or disagreed; the comm is dead")                   \
    X(ERR_TIMEOUT, 9, "a peer or the device did not answer in time")                       \
    X(ERR_CANCELLED, 10, "the caller cancelled it")                                        \
    X(ERR_FROZEN, 11, "the context is frozen and this would compile or allocate")          \
    X(ERR_INTERNAL, 12, "a broken invariant inside libmla: please report")

/* How a call ended. */
typedef enum mla_status {
#define MLA_X(name, value, text) MLA_##name = (value),
    MLA_STATUS_MAP(MLA_X)
#undef MLA_X
} mla_status;

/* Filled on failure, never allocated. */
typedef struct mla_error {
    mla_status status;
    int32_t native_code; /* cudaError_t, MPI error class or errno; else 0 */
    const char *where;   /* "src/attention/binding.c:87"; static storage */
    char message[232];   /* one English sentence with the offending values */
} mla_error;

/* Both are static storage. */
MLA_API const char *mla_status_name(mla_status status); /* "MLA_ERR_ARGUMENT" */
MLA_API const char *mla_status_text(mla_status status); /* "an argument breaks ..." */
MLA_API uint32_t mla_version(void); /* run time; major<<16 | minor<<8 | patch */

/* ------------------------------------------------------ device capabilities */

/* What kind of device runs the work. */
typedef enum mla_backend {
    MLA_BACKEND_CPU = 1,
    MLA_BACKEND_CUDA = 2,
} mla_backend;

/* Instruction sets, as bits of a mask. */
typedef enum mla_isa {
    MLA_ISA_C = 1 << 0,      /* portable C; always present; the tests' reference */
    MLA_ISA_AVX2 = 1 << 1,   /* AVX2 + FMA + F16C, and the OS saves YMM */
    MLA_ISA_AVX512 = 1 << 2, /* F+BW+DQ+VL, and the OS saves ZMM and opmasks */
    MLA_ISA_SM80 = 1 << 8,   /* mma.sync family: sm_80, sm_89, sm_120              */
    MLA_ISA_SM90A = 1 << 9,  /* wgmma family                                        */
} mla_isa;

/* What mla_query_device says of a device. */
typedef struct mla_device_info {
    size_t struct_size;
    mla_backend backend;
    int32_t device;       /* CUDA ordinal; 0 for the CPU */
    uint32_t isa_mask;    /* bits of mla_isa that the device has. A plan runs the best that
                             this build has kernels for: mla_plan_describe names it */
    int32_t num_units;    /* SMs, or CPUs this process may run on */
    uint64_t total_bytes; /* device memory */
    uint64_t free_bytes;  /* at the time of the call; a hint only */
    char name[64];        /* NUL-terminated */
} mla_device_info;

/* info: read for struct_size, then filled. Touches no context, allocates nothing.
 * MLA_ERR_UNSUPPORTED if this build has no such backend or there is no device. */
MLA_API MLA_MUST_CHECK mla_status mla_query_device(mla_backend backend, int32_t device,
                                                   mla_device_info *info, mla_error *err);

/* -------------------------------------------------------------------- caps */

/* The type of one number. */
typedef enum mla_dtype { MLA_F32 = 1, MLA_BF16 = 2, MLA_E4M3 = 3 } mla_dtype;

typedef enum mla_kv_format {
    MLA_KV_BF16 = 1,     /* a row is (D+R) bf16                                       */
    MLA_KV_FP8 = 2,      /* a row is (D+R) e4m3; value = e4m3 * kv_scale (one f32)    */
    MLA_KV_FP8_G128 = 3, /* a row is D e4m3, D/128 f32 scales, R bf16; D % 128 == 0   */
    MLA_KV_F32 = 4,      /* a row is (D+R) f32: the CPU's reference format            */
} mla_kv_format;         /* mla_kv_row_bytes() gives the row's size                   */

/* The shape of the query rows. */
typedef enum mla_mode {
    MLA_DECODE = 1, /* one query row a request                                        */
    MLA_VERIFY = 2, /* 1..max_rows_per_request rows, right-aligned causal             */
    MLA_EXTEND = 3, /* chunked prefill: many rows a request, ragged                   */
} mla_mode;

/* One request for a plan: what is computed, and what the plan promises to serve.
 * Memory is computed from this and never grown. */
typedef struct mla_caps {
    size_t struct_size;
    mla_mode mode;
    mla_kv_format kv_format;
    mla_dtype query_dtype;  /* f32, bf16 or e4m3 (then buffers.query_scale); a query is
                               never quantised implicitly                             */
    mla_dtype output_dtype; /* bf16 or f32; accumulation, partials and lse are f32    */
    int32_t num_heads;      /* H >= 1, any number                                     */
    int32_t latent_dim;     /* D, a multiple of 64                                    */
    int32_t rope_dim;       /* R, a multiple of 16; scores use D+R columns            */
    int32_t page_tokens;    /* P: 1, or a multiple of 16                              */
    int32_t causal;         /* 0 or 1; the last query sits on the last key            */
    int32_t window;         /* keys a query sees at most, itself included; 0: all.
                               The last ones of what it would see without a window    */
    float softmax_scale;    /* > 0. No default: it is NOT 1/sqrt(D+R) for MLA         */
    int32_t max_requests;   /* B                                                      */
    int32_t max_query_rows; /* Q, over all requests of one run                        */
    int32_t max_rows_per_request;
    int32_t table_width;        /* T, page slots a request                                */
    int32_t interleave;         /* I of a comm: tokens that lie together on a rank; 0: 1  */
    int64_t max_context_tokens; /* of one request, over all ranks of the comm         */
    int64_t num_pages;          /* N                                                  */
    int64_t page_stride_bytes;  /* 0: P rows back to back; that, or more and 16-B aligned */
} mla_caps;

/* Bytes of one token's row; 0 for a format that is none or dimensions it cannot have:
 * negative ones, or with MLA_KV_FP8_G128 a D that is no multiple of 128. */
MLA_API size_t mla_kv_row_bytes(mla_kv_format format, int32_t latent_dim, int32_t rope_dim);

/* ------------------------------------------------------------------ memory */

/* Where memory is. */
typedef enum mla_space {
    MLA_SPACE_HOST,
    MLA_SPACE_PINNED,
    MLA_SPACE_DEVICE,
    MLA_NUM_SPACES
} mla_space;
/* What memory is for: the classes of the ledger. The first block is the library's own;
 * the second is for programs that keep their memory in the same books, see
 * mla_memory_take. */
typedef enum mla_purpose {
    MLA_FOR_CONTEXT,
    MLA_FOR_SESSION, /* transient: 0 after prepare returns, however it returns */
    MLA_FOR_PLAN,
    MLA_FOR_BINDING,
    MLA_FOR_GRAPH, /* what record keeps until unbind */
    MLA_FOR_COMM,

    MLA_FOR_WEIGHTS,
    MLA_FOR_KV,
    MLA_FOR_ACTIVATIONS,
    MLA_FOR_DRAFTER,
    MLA_FOR_SERVER, /* the one class that may still grow after mla_context_freeze */
    MLA_FOR_OTHER,
    MLA_NUM_PURPOSES
} mla_purpose;

/* Both are static storage. */
MLA_API const char *mla_purpose_name(mla_purpose purpose); /* "weights"; NULL if none */
MLA_API const char *mla_space_name(mla_space space);       /* "host"; NULL if none */

/* Sizes of the arrays in a report; both leave room, so that a new space or purpose
 * moves no field. */
#define MLA_REPORT_SPACES   4
#define MLA_REPORT_PURPOSES 16

/* The only way libmla gets memory. `alloc` returns NULL on failure and is never
 * called with bytes == 0; `release` gets the same bytes, space and purpose back.
 * Both must be thread-safe. Neither is ever called by run or replay. */
typedef struct mla_allocator {
    size_t struct_size;
    void *(*alloc)(void *user, size_t bytes, size_t align_bytes, mla_space space,
                   mla_purpose purpose);
    void (*release)(void *user, void *data, size_t bytes, mla_space space,
                    mla_purpose purpose);
    void *user; /* borrowed until mla_context_destroy */
} mla_allocator;

/* One class in one space. */
typedef struct mla_memory_cell {
    uint64_t now_bytes, peak_bytes, num_allocs, num_frees;
} mla_memory_cell;

/* For estimates now_bytes is what will stay and peak_bytes what will be needed on
 * the way. For live contexts both are exact, counted at the allocator. */
typedef struct mla_memory_report {
    size_t struct_size;
    mla_memory_cell cell[MLA_REPORT_SPACES][MLA_REPORT_PURPOSES];
    uint64_t caller_bytes[MLA_REPORT_SPACES]; /* what mla_requirements asks of you */
} mla_memory_report;

/* ----------------------------------------------------------------- context */

typedef struct mla_context mla_context; /* one device and the books of its memory */

/* How much to say: a level includes those above it. */
typedef enum mla_log_level {
    MLA_LOG_ERROR,
    MLA_LOG_INFO,
    MLA_LOG_DISPATCH,
    MLA_LOG_TIMING
} mla_log_level;

/* What a context is made from; zero is the default of all but `backend`. */
typedef struct mla_context_options {
    size_t struct_size;
    mla_backend backend;            /* required */
    int32_t device;                 /* default 0 */
    int32_t num_threads;            /* CPU only; default: all allowed CPUs */
    uint32_t isa_mask;              /* may only narrow mla_device_info.isa_mask; 0: all.
                                       No bit in common: MLA_ERR_UNSUPPORTED            */
    uint64_t memory_limit_bytes;    /* per space; 0: no limit */
    const mla_allocator *allocator; /* read (copied); NULL: built in */
    /* NULL: silent. Called on the thread of the call that has something to say. */
    void (*log)(void *user, mla_log_level level, const char *line);
    void *log_user; /* borrowed until mla_context_destroy */
    mla_log_level log_level;
    int32_t reserved; /* must be 0 */
} mla_context_options;

/* options: read. out: owned, mla_context_destroy. */
MLA_API MLA_MUST_CHECK mla_status mla_context_create(const mla_context_options *options,
                                                     mla_context **out, mla_error *err);

/* *context: consumed; it may be NULL. MLA_ERR_STATE, and nothing is freed,
 * while a session, plan, binding or comm made from it is alive, or a CUDA graph of the
 * caller's that captured a run of it, or memory that was taken or booked through it has not
 * been given back. */
MLA_API MLA_MUST_CHECK mla_status mla_context_destroy(mla_context **context,
                                                      mla_error *err);

/* report: read for struct_size, then filled. Safe to call from any thread. */
MLA_API MLA_MUST_CHECK mla_status mla_context_memory(const mla_context *context,
                                                     mla_memory_report *report,
                                                     mla_error *err);

/* Keeps the caller's own memory in the context's books, under its limit and its freeze.
 * purpose: MLA_FOR_WEIGHTS or one listed after it; MLA_FOR_CONTEXT too. space: host, and
 * with CUDA pinned and device. align_bytes: a power of two, at most 4096, and 256 where
 * the driver gives the memory. The memory's contents are undefined.
 * out: owned, mla_memory_give with the same bytes, space and purpose.
 * MLA_ERR_NO_MEMORY, MLA_ERR_FROZEN (any purpose but MLA_FOR_SERVER), MLA_ERR_ARGUMENT
 * (bytes == 0 included). */
MLA_API MLA_MUST_CHECK mla_status mla_memory_take(mla_context *context, mla_space space,
                                                  mla_purpose purpose, size_t bytes,
                                                  size_t align_bytes, void **out,
                                                  mla_error *err);

/* data: consumed; NULL is allowed. With a space or purpose that mla_memory_take refuses
 * nothing happens. */
MLA_API void mla_memory_give(mla_context *context, mla_space space, mla_purpose purpose,
                             size_t bytes, void *data);

/* Books memory that came from elsewhere (a mapped file): bytes > 0 enters it, < 0 strikes
 * it out, and no more than was entered. Same errors as mla_memory_take. */
MLA_API MLA_MUST_CHECK mla_status mla_memory_book(mla_context *context, mla_space space,
                                                  mla_purpose purpose, int64_t bytes,
                                                  mla_error *err);

/* ------------------------------------------------------------------ freeze */

/* From here on, compiling and allocating through this context are MLA_ERR_FROZEN, and
 * the text names what was missing: opening a session, mla_bind and mla_record are such
 * calls. run, replay, append, poll and everything that gives back stay legal. There is
 * no way back. MLA_ERR_STATE while a session is open. */
MLA_API MLA_MUST_CHECK mla_status mla_context_freeze(mla_context *context, mla_error *err);

/* ----------------------------------------------------------------- session */

typedef struct mla_session mla_session; /* the unit of preparation; dies after publish */
typedef struct mla_plan mla_plan; /* compiled launchers and constants; immutable, counted */
typedef struct mla_comm mla_comm; /* a context-parallel group; nothing makes one yet */
typedef int32_t mla_ticket;       /* names one request of one session */

/* How far mla_session_prepare has come. */
typedef struct mla_progress {
    int32_t num_requests, num_compiled, num_from_cache, num_primed;
} mla_progress;

/* How a session prepares; zero is the default of all. */
typedef struct mla_session_options {
    size_t struct_size;
    const char *cache_dir;   /* read (copied); NULL: no disk cache */
    int32_t compile_workers; /* 0: one a CPU, at most 8 */
    int32_t reserved;        /* must be 0 */
    /* NULL: none. Called by prepare on its thread: once a request is compiled, and within
     * its prime, while its transient operands are held. May call mla_session_cancel and
     * mla_context_memory. */
    void (*progress)(void *user, const mla_progress *progress);
    void *progress_user;    /* borrowed until mla_session_close */
    const char *nvrtc_path; /* read (copied); CUDA: the compiler's library; NULL: by name */
} mla_session_options;

/* context: borrowed until close. options: read; NULL: all defaults. out: owned,
 * mla_session_close. */
MLA_API MLA_MUST_CHECK mla_status mla_session_open(mla_context *context,
                                                   const mla_session_options *options,
                                                   mla_session **out, mla_error *err);

/* Checks caps against the device and declares them; equal requests share one plan.
 * Allocates nothing on the device. caps: read. comm: borrowed until the plan is
 * released, NULL for one rank; then collective: equal caps on every rank, else
 * MLA_ERR_PEER. */
MLA_API MLA_MUST_CHECK mla_status mla_session_add(mla_session *session,
                                                  const mla_caps *caps, mla_comm *comm,
                                                  mla_ticket *out, mla_error *err);

/* What preparing now would take: peak_bytes on the way, now_bytes that stay. */
MLA_API MLA_MUST_CHECK mla_status mla_session_estimate(const mla_session *session,
                                                       mla_memory_report *report,
                                                       mla_error *err);

/* Compiles (or loads), primes each request once on transient operands, synchronises
 * the device, checks that what launched is what was declared, and gives every
 * transient byte back: on MLA_OK, on failure and on cancel. All or nothing for the
 * requests added since the last prepare; earlier plans keep running; may be called
 * again. MLA_ERR_CANCELLED after mla_session_cancel. */
MLA_API MLA_MUST_CHECK mla_status mla_session_prepare(mla_session *session, mla_error *err);

/* From any thread or signal handler, at any time before close. Outside prepare it cancels the
 * next one; a prepare that failed, cancelled or otherwise, may be called again, and what came
 * before it returned is spent. */
MLA_API void mla_session_cancel(mla_session *session);

/* out: owned, mla_plan_release. MLA_ERR_STATE before prepare succeeded. */
MLA_API MLA_MUST_CHECK mla_status mla_session_publish(mla_session *session,
                                                      mla_ticket ticket, mla_plan **out,
                                                      mla_error *err);

/* *session: consumed; NULL is allowed. Published plans live on; everything else of the
 * session is gone. */
MLA_API void mla_session_close(mla_session **session);

/* -------------------------------------------------------------------- plan */

/* Cannot fail. Returns plan, owned once more: mla_plan_release; NULL of NULL. */
MLA_API mla_plan *mla_plan_retain(mla_plan *plan);
MLA_API void mla_plan_release(mla_plan **plan); /* *plan: consumed; it may be NULL */

/* One buffer's demands. */
typedef struct mla_need {
    size_t bytes; /* exactly enough: bytes-1 is refused by mla_bind. kv_pool: N * stride */
    uint32_t align_bytes;
    mla_space space;
} mla_need;

/* What a plan asks of its caller, buffer by buffer. */
typedef struct mla_requirements {
    size_t struct_size;
    mla_need kv_pool, query, output, lse, block_table, context_lens, query_starts,
        workspace;
} mla_requirements;

/* out: read for struct_size, then filled. */
MLA_API MLA_MUST_CHECK mla_status mla_plan_requirements(const mla_plan *plan,
                                                        mla_requirements *out,
                                                        mla_error *err);

/* One line with everything that the plan was made from; `mla bench attention --plan` takes
 * it and makes the plan again:
 * "cpu:avx2 verify h128 d512+64 p64 fp8_g128 q:bf16 o:bf16 b32 q64 r2 t2048 n4096 s41984
 * ctx131072 causal w0 x0.0721687824", and for a comm the interleave, " i16".
 * text: filled; needed_bytes (may be NULL) counts the NUL; too small a text is truncated.
 * plan NULL: an empty line. */
MLA_API void mla_plan_describe(const mla_plan *plan, char *text, size_t text_bytes,
                               size_t *needed_bytes);

/* ----------------------------------------------------------------- binding */

typedef struct mla_binding mla_binding; /* a plan and the caller's buffers */

/* Memory that the library writes. */
typedef struct mla_out {
    void *data;
    size_t bytes;
} mla_out;

/* Memory that the library only reads. */
typedef struct mla_in {
    const void *data;
    size_t bytes;
} mla_in;

/* All borrowed until mla_unbind. None may overlap another. */
typedef struct mla_buffers {
    size_t struct_size;
    mla_in kv_pool;      /* [N] pages of [P] rows of mla_kv_row_bytes          */
    mla_in query;        /* [Q][H][D+R] query_dtype, already absorbed          */
    mla_in block_table;  /* [B][T] int32 page numbers; slots past the end are
                            never read; a number outside [0,N) before the end
                            masks its tokens                                   */
    mla_in context_lens; /* [B] int32 tokens of the request, this run's included,
                            over all ranks of the comm: each row's local count is
                            worked out after its own length is known; <= 0: an
                            empty row; above what T pages hold: that. Rows with
                            lengths of their own are requests of one row       */
    mla_in query_starts; /* [B+1] int32, not falling, first 0, last Q          */
    mla_in kv_scale;     /* one f32 on the device, for MLA_KV_FP8; else empty  */
    mla_in query_scale;  /* one f32 on the device, for MLA_E4M3; else empty    */
    mla_out output;      /* [Q][H][D] output_dtype; all 0 where no key is seen.
                            With a comm of W ranks [Q][H/W][D]: this rank's
                            share of the heads, merged over the group          */
    mla_out lse;         /* [Q][H] or [Q][H/W] f32 natural log; -inf where no
                            key is seen, which is the identity of the merge    */
    mla_out workspace;   /* contents are undefined between runs                */
} mla_buffers;

/* plan: retained by the binding. buffers: read; what it points to is borrowed.
 * out: owned, mla_unbind. */
MLA_API MLA_MUST_CHECK mla_status mla_bind(mla_plan *plan, const mla_buffers *buffers,
                                           mla_binding **out, mla_error *err);
/* *binding: consumed; it may be NULL. Waits for a run in flight. */
MLA_API void mla_unbind(mla_binding **binding);

/* --------------------------------------------------------------------- run */

/* Where work is enqueued. */
typedef struct mla_stream {
    void *native;
} mla_stream; /* cudaStream_t; {NULL} on CPU */

/* How much of the capacity this run uses. */
typedef struct mla_batch {
    size_t struct_size;
    int32_t num_requests;       /* <= max_requests */
    int32_t num_query_rows;     /* <= max_query_rows; query_starts[num_requests] */
    int64_t max_context_tokens; /* upper bound of context_lens in this batch, at most that
                                   of the caps: a promise that a device sizes its launch by */
} mla_batch;

/* Enqueues one batch on the stream. Allocates nothing, never waits and never queries
 * the device; runs that follow each other on one stream may share a workspace (all
 * layers of a model share one); legal inside the caller's own stream capture, so that
 * an engine graphs its whole step. On the CPU it returns when done, and runs of different
 * bindings from different threads are legal: they take the pool in turn; and there
 * query_starts that break their rule are MLA_ERR_ARGUMENT, with nothing written. batch:
 * read. */
MLA_API MLA_MUST_CHECK mla_status mla_run(mla_binding *binding, const mla_batch *batch,
                                          mla_stream stream, mla_error *err);

/* For callers without graphs of their own: freezes `batch` (a CUDA graph, or a
 * resolved task list on the CPU). Replay re-reads the CONTENTS of every input,
 * context_lens and block_table included; the split schedule is recomputed on the
 * device from live lengths, so a replay stays right within the batch's bounds. */
MLA_API MLA_MUST_CHECK mla_status mla_record(mla_binding *binding, const mla_batch *batch,
                                             mla_error *err);

/* Runs what mla_record froze, with the buffers' contents of now. MLA_ERR_STATE where nothing
 * was recorded. */
MLA_API MLA_MUST_CHECK mla_status mla_replay(mla_binding *binding, mla_stream stream,
                                             mla_error *err);

/* Non-blocking. MLA_OK: idle and good. MLA_ERR_STATE: still in flight. Else the
 * first asynchronous failure, for good. */
MLA_API MLA_MUST_CHECK mla_status mla_poll(mla_binding *binding, mla_error *err);

/* ------------------------------------------------------------------ append */

/* Writes new rows into pages, rounding or quantising to the pool's format, to nearest
 * even: FP8 stores e4m3(x / kv_scale) by an f32 division; G128 stores e4m3(x / s) with
 * s = max|x| of the finite ones of the 128 values / 448 in f32, or 1 where that is 0. e4m3
 * saturates at +-448, infinities too; NaN stays NaN. rows:
 * [num_rows][D+R] f32 or bf16, latent already normed, rope part already rotated.
 * slots: [num_rows] int64, page * P + offset; a slot outside the pool, -1 included,
 * writes nowhere; of two rows with one slot either may stay. kv_pool overlaps no other.
 * Same stream rules as mla_run. */
typedef struct mla_append_args {
    size_t struct_size;
    mla_in rows, slots, kv_scale;
    mla_out kv_pool;
    int64_t num_rows;
    mla_dtype rows_dtype;
    int32_t reserved; /* must be 0 */
} mla_append_args;

/* Appends as said above. args: read, and what it points to; kv_pool is written. */
MLA_API MLA_MUST_CHECK mla_status mla_append(const mla_plan *plan,
                                             const mla_append_args *args, mla_stream stream,
                                             mla_error *err);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* MLA_MLA_H */
