/* programs.c - the table of programs, and what each is compiled with. */
#include "attention/cuda/programs.h"

#include <stdio.h>

#include "attention/cuda/texts.h"

static const mlai_cuda_program_row programs[MLAI_CUDA_NUM_PROGRAMS] = {
    [MLAI_CUDA_ATTEND_BF16_M16] = {"attend_bf16_m16", "attend", mlai_cuda_text_attend},
    [MLAI_CUDA_ATTEND_BF16_M32] = {"attend_bf16_m32", "attend", mlai_cuda_text_attend},
    [MLAI_CUDA_ATTEND_BF16_M64] = {"attend_bf16_m64", "attend", mlai_cuda_text_attend},
    [MLAI_CUDA_ATTEND_FP8_M16] = {"attend_fp8_m16", "attend", mlai_cuda_text_attend},
    [MLAI_CUDA_ATTEND_FP8_M32] = {"attend_fp8_m32", "attend", mlai_cuda_text_attend},
    [MLAI_CUDA_ATTEND_FP8_M64] = {"attend_fp8_m64", "attend", mlai_cuda_text_attend},
    [MLAI_CUDA_ATTEND_G128_M16] = {"attend_g128_m16", "attend", mlai_cuda_text_attend},
    [MLAI_CUDA_ATTEND_G128_M32] = {"attend_g128_m32", "attend", mlai_cuda_text_attend},
    [MLAI_CUDA_MERGE] = {"merge", "merge", mlai_cuda_text_merge},
    [MLAI_CUDA_APPEND_BF16] = {"append_bf16", "append", mlai_cuda_text_append},
    [MLAI_CUDA_APPEND_FP8] = {"append_fp8", "append", mlai_cuda_text_append},
    [MLAI_CUDA_APPEND_G128] = {"append_g128", "append", mlai_cuda_text_append},
};
_Static_assert(MLAI_CUDA_NUM_PROGRAMS <= 40, "the number that docs/design.md allows");

const mlai_cuda_program_row *mlai_cuda_program_of(mlai_cuda_program program)
{
    return &programs[program];
}

mlai_cuda_architecture mlai_cuda_architecture_of(const mlai_cuda_device *device)
{
    mlai_cuda_architecture out;
    (void)snprintf(out.text, sizeof out.text, "sm_%d%d%s", device->major, device->minor,
                   device->major == 9 || device->major == 12 ? "a" : "");
    return out;
}

static bool is_attend(mlai_cuda_program program)
{
    return program <= MLAI_CUDA_ATTEND_G128_M32;
}

static void define(mlai_cuda_options *options, const char *name, int32_t value)
{
    (void)snprintf(options->text[options->num++], MLAI_CUDA_OPTION_BYTES, "-D%s=%d", name,
                   value);
}

static void flag(mlai_cuda_options *options, const char *text)
{
    (void)snprintf(options->text[options->num++], MLAI_CUDA_OPTION_BYTES, "%s", text);
}

mlai_cuda_options mlai_cuda_options_of(const mlai_cuda_shape *shape,
                                       mlai_cuda_program program)
{
    mlai_cuda_options out = {0};
    flag(&out, "--std=c++17");
    define(&out, "LATENT", shape->latent_dim);
    define(&out, "NUM_THREADS", is_attend(program) ? shape->num_threads : 256);
    if (program == MLAI_CUDA_MERGE) {
        return out;
    }
    define(&out, "ROPE", shape->rope_dim);
    define(&out, "KV_FORMAT", (int32_t)shape->kv_format);
    define(&out, "ROW_BYTES", shape->row_bytes);
    if (is_attend(program)) {
        define(&out, "TILE_ROWS", shape->tile_rows);
        define(&out, "TILE_TOKENS", shape->tile_tokens);
        define(&out, "NUM_STAGES", shape->num_stages);
        define(&out, "ROW_STRIDE", shape->row_stride);
        define(&out, "DIM_GROUPS", shape->num_dim_groups);
        define(&out, "BLOCKS_PER_UNIT", shape->blocks_per_unit);
    }
    return out;
}

uint64_t mlai_cuda_declared(const mlai_cuda_shape *shape)
{
    uint64_t merge = shape->has_merge ? UINT64_C(1) << MLAI_CUDA_MERGE : 0;
    return UINT64_C(1) << shape->attend | UINT64_C(1) << shape->append | merge;
}
