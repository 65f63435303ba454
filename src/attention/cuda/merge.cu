/* merge.cu - the partial results of a row's splits to its output. A block takes a row and a
 * slice of its columns; its threads are num_groups groups of slice/4 lanes, group g sums the
 * splits g, g + num_groups, ... A partial with weight 0 is never read. */

constexpr int COLUMNS = 4;      /* of a lane */
constexpr int MAX_MERGED = 512; /* splits whose weights are kept at once */

struct merged {
    float4 sum[THREADS];
    float weight[MAX_MERGED];
    float most[WARPS], total[WARPS];
};

DEVICE float block_max(float value, float *of_warp)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        value = fmaxf(value, __shfl_xor_sync(ALL_LANES, value, step));
    }
    if (threadIdx.x % WARP == 0) {
        of_warp[threadIdx.x / WARP] = value;
    }
    __syncthreads();
    value = of_warp[0];
    for (int w = 1; w < WARPS; w++) {
        value = fmaxf(value, of_warp[w]);
    }
    return value;
}

DEVICE float block_sum(float value, float *of_warp)
{
    for (int step = WARP / 2; step > 0; step /= 2) {
        value += __shfl_xor_sync(ALL_LANES, value, step);
    }
    if (threadIdx.x % WARP == 0) {
        of_warp[threadIdx.x / WARP] = value;
    }
    __syncthreads();
    value = of_warp[0];
    for (int w = 1; w < WARPS; w++) {
        value += of_warp[w];
    }
    return value;
}

DEVICE float lse_of_split(const params &p, const request_view &r, key_range seen,
                          s64 packed, int k)
{
    key_range keys = keys_in_split(r, seen, k);
    return keys.begin < keys.end ? p.partial_lse[packed * p.split.max_splits + k]
                                 : minus_infinity();
}

DEVICE void write_output(const params &p, s64 at, float4 v)
{
    if (p.output_dtype == MLAI_CUDA_OUTPUT_F32) {
        *(float4 *)((float *)p.output + at) = v;
    } else {
        *(uint2 *)((u16 *)p.output + at) = make_uint2(bf16x2(v.x, v.y), bf16x2(v.z, v.w));
    }
}

DEVICE void add_weighted(float4 &sum, float weight, const float *from)
{
    if (weight != 0) {
        float4 v = *(const float4 *)from;
        sum.x += weight * v.x;
        sum.y += weight * v.y;
        sum.z += weight * v.z;
        sum.w += weight * v.w;
    }
}

/* Sums of a group's splits, in their order; those of all groups then, in theirs. */
DEVICE float4 sum_splits(const params &p, merged &m, s64 packed, int num_splits, int column,
                         int group, int num_groups)
{
    float4 sum = make_float4(0, 0, 0, 0);
    const float *from = p.partial + packed * p.split.max_splits * LATENT + column;
#pragma unroll 8
    for (int k = group; k < num_splits; k += num_groups) {
        add_weighted(sum, m.weight[k], from + (s64)k * LATENT);
    }
    m.sum[threadIdx.x] = sum;
    __syncthreads();
    int lanes = LATENT / (int)gridDim.y / COLUMNS;
    for (int g = 1; g < num_groups && group == 0; g++) {
        float4 v = m.sum[threadIdx.x + g * lanes];
        sum.x += v.x;
        sum.y += v.y;
        sum.z += v.z;
        sum.w += v.w;
    }
    return sum;
}

DEVICE void merge_row(const params &p, merged &m, s64 packed, const request_view &r,
                      key_range seen)
{
    float most = minus_infinity();
    for (int k = threadIdx.x; k < r.num_splits; k += THREADS) {
        float lse = lse_of_split(p, r, seen, packed, k);
        m.weight[k] = lse;
        most = lse > most || lse != lse ? lse : most;
    }
    most = block_max(most, m.most);
    float base = most == minus_infinity() ? 0 : most;
    float total = 0;
    for (int k = threadIdx.x; k < r.num_splits; k += THREADS) {
        float weight = expf(m.weight[k] - base);
        m.weight[k] = weight;
        total += weight;
    }
    total = block_sum(total, m.total);
    int slice = LATENT / (int)gridDim.y;
    int lanes = slice / COLUMNS;
    int num_groups = THREADS / lanes;
    int group = (int)threadIdx.x / lanes;
    int column = (int)blockIdx.y * slice + (int)threadIdx.x % lanes * COLUMNS;
    float4 sum = sum_splits(p, m, packed, group < num_groups ? r.num_splits : 0, column,
                            group, num_groups);
    if (group == 0) {
        float inverse = total == 0 ? 0 : 1 / total;
        float4 v = {sum.x * inverse, sum.y * inverse, sum.z * inverse, sum.w * inverse};
        write_output(p, packed * LATENT + column, v);
    }
    if (threadIdx.x == 0 && blockIdx.y == 0) {
        p.lse[packed] = total == 0 ? minus_infinity() : base + logf(total);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    merge(const __grid_constant__ params p)
{
    __shared__ merged m;
    bool has_waited = false;
    s64 num_packed = (s64)p.num_query_rows * p.num_heads;
    for (s64 packed = blockIdx.x; packed < num_packed; packed += gridDim.x) {
        int row = (int)(packed / p.num_heads);
        request_view r = view_of(p, request_of_row(p, row));
        if (!has_waited) {
            wait_for_last();
            has_waited = true;
        }
        if (r.num_splits > 1) {
            __syncthreads();
            merge_row(p, m, packed, r, keys_of_row(p, r, row - r.first_row));
        }
    }
}
