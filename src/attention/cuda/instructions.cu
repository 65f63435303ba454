/* instructions.cu - the machine instructions that C has no name for, sm_80 and later. */

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;

#define DEVICE __device__ __forceinline__

constexpr int WARP = 32;
constexpr int THREADS = NUM_THREADS;
constexpr int WARPS = THREADS / WARP;
constexpr u32 ALL_LANES = 0xffffffffu;

/* threadIdx.x, read again: what follows from it is not kept in a register from one tile to the
 * next. */
DEVICE int thread_now()
{
    int t;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
    return t;
}

DEVICE float minus_infinity()
{
    return __int_as_float(0xff800000);
}

DEVICE u32 shared_address(const void *at)
{
    return (u32)__cvta_generic_to_shared(at);
}

/* BYTES from global to shared memory, in the background; zeros if not `valid`, when nothing is
 * read. */
template <int BYTES> DEVICE void copy_async(u32 to, const u8 *from, bool valid)
{
    int bytes = valid ? BYTES : 0;
    if constexpr (BYTES == 16) {
        asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to),
                     "l"(from), "r"(bytes)
                     : "memory");
    } else {
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;" ::"r"(to), "l"(from),
                     "r"(bytes), "n"(BYTES)
                     : "memory");
    }
}

DEVICE void copy_commit()
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

/* All but the last `N` groups have landed. */
template <int N> DEVICE void copy_wait()
{
    asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");
}

/* A barrier in shared memory that also counts bytes that land: sm_90 and later. */
DEVICE void barrier_init(u32 barrier, int num_arrivals)
{
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(num_arrivals)
                 : "memory");
}

DEVICE void barrier_arrive(u32 barrier)
{
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

DEVICE void barrier_arrive_expecting(u32 barrier, int bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier),
                 "r"(bytes)
                 : "memory");
}

DEVICE void barrier_wait(u32 barrier, u32 parity)
{
    asm volatile("{\n"
                 ".reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n"
                 "}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}

/* What this thread wrote, or saw of others' writes, comes before the copies that follow. */
DEVICE void order_before_copies()
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

/* A multiple of 16 bytes, by the copy engine: it tells the barrier. */
DEVICE void copy_bulk(u32 to, const u8 *from, int bytes, u32 barrier)
{
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
                 "[%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

/* The kernel behind this one on the stream may start, if it was launched so. */
DEVICE void let_next_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* What the kernel before this one on the stream wrote is there. */
DEVICE void wait_for_last()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

DEVICE void load_matrix_x2(u32 (&m)[2], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(m[0]), "=r"(m[1])
                 : "r"(at)
                 : "memory");
}

DEVICE void load_matrix_x4(u32 (&m)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(at)
                 : "memory");
}

DEVICE void load_matrix_x4_transposed(u32 (&m)[4], u32 at)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(at)
                 : "memory");
}

DEVICE uint4 load_shared_16(u32 at)
{
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
                 : "r"(at)
                 : "memory");
    return v;
}

DEVICE void store_zeros_16(u32 at)
{
    asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(at), "r"(0) : "memory");
}

DEVICE u32 load_shared_4(u32 at)
{
    u32 v;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(v) : "r"(at) : "memory");
    return v;
}

DEVICE uint2 load_shared_8(u32 at)
{
    uint2 v;
    asm volatile("ld.shared.v2.u32 {%0,%1}, [%2];"
                 : "=r"(v.x), "=r"(v.y)
                 : "r"(at)
                 : "memory");
    return v;
}

/* d += a b: 16 rows by 8 columns, 16 deep. IS_BF16: else f16. */
template <bool IS_BF16>
DEVICE void multiply(float (&d)[4], const u32 (&a)[4], u32 b0, u32 b1)
{
    if constexpr (IS_BF16) {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    } else {
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
            "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    }
}

/* Two numbers to the halves of a word, to nearest even; `low` in the lower one. */
DEVICE u32 bf16x2(float low, float high)
{
    u32 v;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}

DEVICE u32 f16x2(float low, float high)
{
    u32 v;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(high), "f"(low));
    return v;
}

DEVICE float2 floats_of_f16x2(u32 v)
{
    float2 f;
    asm("{.reg .f16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
        : "=f"(f.x), "=f"(f.y)
        : "r"(v));
    return f;
}

DEVICE float2 floats_of_bf16x2(u32 v)
{
    return make_float2(__uint_as_float(v << 16), __uint_as_float(v & 0xffff0000u));
}

/* Two e4m3 codes in the lower half of a word to f16, which holds all their values. */
DEVICE u32 f16x2_of_e4m3x2(u32 codes)
{
    u32 v;
#if __CUDA_ARCH__ >= 890
    asm("{.reg .b16 l; cvt.u16.u32 l, %1; cvt.rn.f16x2.e4m3x2 %0, l;}"
        : "=r"(v)
        : "r"(codes));
#else
    /* The codes as f16 are the values times 2^-8, subnormals too; NaN needs its own code. */
    u32 spread = __byte_perm(codes, 0, 0x1404);
    u32 bits = (spread & 0x80008000u) | (spread & 0x7f007f00u) >> 1;
    asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(v) : "r"(bits), "r"(0x5c005c00u));
    v |= (spread & 0x7f00u) == 0x7f00u ? 0x7fffu : 0;
    v |= (spread & 0x7f000000u) == 0x7f000000u ? 0x7fff0000u : 0;
#endif
    return v;
}

DEVICE u32 bf16x2_of_f16x2(u32 v)
{
    float2 f = floats_of_f16x2(v);
    return bf16x2(f.x, f.y);
}

DEVICE float exp2_fast(float x)
{
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

DEVICE float log2_fast(float x)
{
    float y;
    asm("lg2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* sum += what lies at `from`, in loads as wide as N allows. */
template <int N> DEVICE void add_floats(float (&sum)[N], const float *from)
{
    if constexpr (N % 4 == 0) {
#pragma unroll
        for (int i = 0; i < N; i += 4) {
            float4 v = *(const float4 *)(from + i);
            sum[i] += v.x;
            sum[i + 1] += v.y;
            sum[i + 2] += v.z;
            sum[i + 3] += v.w;
        }
    } else if constexpr (N == 2) {
        float2 v = *(const float2 *)from;
        sum[0] += v.x;
        sum[1] += v.y;
    } else {
        sum[0] += from[0];
    }
}
