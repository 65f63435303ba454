/* tiny_model.c - writing a checkpoint of some kilobytes: see tiny_model.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <dirent.h>
#include <unistd.h>

#include "base/convert.h"
#include "support/random.h"
#include "support/tiny_model.h"

static const char config_text[] =
    "{\"architectures\": [\"DeepseekV3ForCausalLM\"], \"model_type\": \"deepseek_v3\",\n"
    " \"vocab_size\": 264, \"hidden_size\": 16, \"intermediate_size\": 24,\n"
    " \"moe_intermediate_size\": 8, \"num_hidden_layers\": 2, \"num_attention_heads\": 2,\n"
    " \"num_key_value_heads\": 2, \"n_shared_experts\": 1, \"n_routed_experts\": 4,\n"
    " \"num_experts_per_tok\": 2, \"n_group\": 2, \"topk_group\": 1,\n"
    " \"norm_topk_prob\": true, \"routed_scaling_factor\": 2.5,\n"
    " \"scoring_func\": \"sigmoid\", \"topk_method\": \"noaux_tc\", \"moe_layer_freq\": "
    "1,\n"
    " \"first_k_dense_replace\": 1, \"q_lora_rank\": 8, \"kv_lora_rank\": 64,\n"
    " \"qk_nope_head_dim\": 8, \"qk_rope_head_dim\": 16, \"v_head_dim\": 8,\n"
    " \"hidden_act\": \"silu\", \"max_position_embeddings\": 512, \"rms_norm_eps\": "
    "1e-05,\n"
    " \"rope_theta\": 10000.0, \"rope_scaling\": null, \"attention_bias\": false,\n"
    " \"tie_word_embeddings\": false, \"bos_token_id\": 261, \"eos_token_id\": 262,\n"
    " \"num_nextn_predict_layers\": 0, \"torch_dtype\": \"bfloat16\"}\n";

static const char tokenizer_config_text[] =
    "{\"add_bos_token\": true, \"bos_token\": \"<bos>\",\n"
    " \"eos_token\": {\"__type\": \"AddedToken\", \"content\": \"<eos>\"},\n"
    " \"tokenizer_class\": \"PreTrainedTokenizerFast\"}\n";

typedef struct tiny_tensor {
    const char *name;
    int num_out, num_in; /* 0: a vector */
} tiny_tensor;

#define ATTENTION(layer)                                                                   \
    {"model.layers." layer ".input_layernorm.weight", 16, 0},                              \
        {"model.layers." layer ".self_attn.q_a_proj.weight", 8, 16},                       \
        {"model.layers." layer ".self_attn.q_a_layernorm.weight", 8, 0},                   \
        {"model.layers." layer ".self_attn.q_b_proj.weight", 48, 8},                       \
        {"model.layers." layer ".self_attn.kv_a_proj_with_mqa.weight", 80, 16},            \
        {"model.layers." layer ".self_attn.kv_a_layernorm.weight", 64, 0},                 \
        {"model.layers." layer ".self_attn.kv_b_proj.weight", 32, 64},                     \
        {"model.layers." layer ".self_attn.o_proj.weight", 16, 16},                        \
    {                                                                                      \
        "model.layers." layer ".post_attention_layernorm.weight", 16, 0                    \
    }
#define MLP(prefix, width)                                                                 \
    {prefix "gate_proj.weight", width, 16}, {prefix "up_proj.weight", width, 16},          \
    {                                                                                      \
        prefix "down_proj.weight", 16, width                                               \
    }
#define EXPERT(number) MLP("model.layers.1.mlp.experts." number ".", 8)

static const tiny_tensor tensors[] = {
    {"model.embed_tokens.weight", TINY_VOCAB, 16},
    {"model.norm.weight", 16, 0},
    {"lm_head.weight", TINY_VOCAB, 16},
    ATTENTION("0"),
    MLP("model.layers.0.mlp.", 24),
    ATTENTION("1"),
    {"model.layers.1.mlp.gate.weight", 4, 16},
    {"model.layers.1.mlp.gate.e_score_correction_bias", 4, 0},
    EXPERT("0"),
    EXPERT("1"),
    EXPERT("2"),
    EXPERT("3"),
    MLP("model.layers.1.mlp.shared_experts.", 8),
};
enum { NUM_TENSORS = sizeof tensors / sizeof tensors[0] };

static FILE *open_file(const tiny_model *model, const char *name, const char *mode)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", model->dir, name);
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    return file;
}

void tiny_model_put(const tiny_model *model, const char *name, const void *bytes,
                    size_t num_bytes)
{
    FILE *file = open_file(model, name, "wb");
    assert_int_equal(fwrite(bytes, 1, num_bytes, file), num_bytes);
    assert_int_equal(fclose(file), 0);
}

void tiny_model_put_text(const tiny_model *model, const char *name, const char *text)
{
    tiny_model_put(model, name, text, strlen(text));
}

unsigned char *tiny_model_get(const tiny_model *model, const char *name, size_t *num_bytes)
{
    FILE *file = open_file(model, name, "rb");
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    *num_bytes = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*num_bytes + 1);
    assert_non_null(bytes);
    assert_int_equal(fread(bytes, 1, *num_bytes, file), *num_bytes);
    (void)fclose(file);
    return bytes;
}

void tiny_model_patch(const tiny_model *model, const char *name, const char *from,
                      const char *to)
{
    size_t num_bytes;
    unsigned char *bytes = tiny_model_get(model, name, &num_bytes);
    unsigned char *at = memmem(bytes, num_bytes, from, strlen(from));
    assert_non_null(at);
    FILE *file = open_file(model, name, "wb");
    size_t before = (size_t)(at - bytes);
    size_t after = num_bytes - before - strlen(from);
    assert_int_equal(fwrite(bytes, 1, before, file), before);
    assert_int_equal(fwrite(to, 1, strlen(to), file), strlen(to));
    assert_int_equal(fwrite(at + strlen(from), 1, after, file), after);
    assert_int_equal(fclose(file), 0);
    free(bytes);
}

void tiny_model_drop(const tiny_model *model, const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", model->dir, name);
    assert_int_equal(unlink(path), 0);
}

static size_t bytes_of(const tiny_tensor *tensor)
{
    return 2 * (size_t)tensor->num_out * (size_t)(tensor->num_in > 0 ? tensor->num_in : 1);
}

static void write_header(FILE *file)
{
    enum { ROOM = 1 << 14 };
    char *text = malloc(ROOM);
    assert_non_null(text);
    size_t used = (size_t)snprintf(text, ROOM, "{\"__metadata__\": {\"format\": \"pt\"}");
    size_t begin = 0;
    for (int i = 0; i < NUM_TENSORS; i++) {
        char shape[32];
        const tiny_tensor *t = &tensors[i];
        (void)snprintf(shape, sizeof shape, t->num_in > 0 ? "%d, %d" : "%d", t->num_out,
                       t->num_in);
        used += (size_t)snprintf(text + used, ROOM - used,
                                 ", \"%s\": {\"dtype\": \"BF16\", \"shape\": [%s], "
                                 "\"data_offsets\": [%zu, %zu]}",
                                 t->name, shape, begin, begin + bytes_of(t));
        begin += bytes_of(t);
        assert_true(used < ROOM - 16);
    }
    text[used++] = '}';
    for (; used % 8 != 0; used++) {
        text[used] = ' ';
    }
    uint64_t length = used; /* the tests run on little-endian machines */
    assert_int_equal(fwrite(&length, sizeof length, 1, file), 1);
    assert_int_equal(fwrite(text, 1, used, file), used);
    free(text);
}

static void write_values(FILE *file, const tiny_tensor *tensor, rng *random)
{
    int is_norm = strstr(tensor->name, "norm.weight") != NULL;
    for (size_t i = 0; i < bytes_of(tensor) / 2; i++) {
        float value = is_norm ? 1.0F : 0.2F * (float)rng_normal(random);
        uint16_t bits = mlai_bf16_from_f32(value);
        assert_int_equal(fwrite(&bits, sizeof bits, 1, file), 1);
    }
}

static void write_weights(const tiny_model *model)
{
    rng random = rng_of_seed(1);
    FILE *file = open_file(model, "model.safetensors", "wb");
    write_header(file);
    for (int i = 0; i < NUM_TENSORS; i++) {
        write_values(file, &tensors[i], &random);
    }
    assert_int_equal(fclose(file), 0);
}

/* The printable stand-in of a byte in byte-level BPE, as JSON. */
static void write_byte(FILE *file, int byte)
{
    int is_plain = (byte >= '!' && byte <= '~') || (byte >= 0xa1 && byte <= 0xac) ||
                   (byte >= 0xae && byte <= 0xff);
    int moved = 0;
    for (int i = 0; i < byte; i++) {
        moved += !((i >= '!' && i <= '~') || (i >= 0xa1 && i <= 0xac) ||
                   (i >= 0xae && i <= 0xff));
    }
    (void)fprintf(file, "\"\\u%04x\": %d", is_plain ? byte : 256 + moved, byte);
}

static void write_added(FILE *file, int id, const char *content, const char *special)
{
    (void)fprintf(file,
                  "%s{\"id\": %d, \"content\": \"%s\", \"single_word\": false, "
                  "\"lstrip\": false, \"rstrip\": false, \"normalized\": false, "
                  "\"special\": %s}",
                  id == TINY_BOS ? "" : ", ", id, content, special);
}

static void write_tokenizer(const tiny_model *model)
{
    FILE *file = open_file(model, "tokenizer.json", "wb");
    (void)fprintf(file, "{\"version\": \"1.0\", \"truncation\": null, \"padding\": null,\n"
                        "\"added_tokens\": [");
    write_added(file, TINY_BOS, "<bos>", "true");
    write_added(file, TINY_EOS, "<eos>", "true");
    write_added(file, TINY_USER, "<user>", "false");
    (void)fprintf(
        file,
        "],\n\"normalizer\": null,\n\"pre_tokenizer\": {\"type\": \"Sequence\", "
        "\"pretokenizers\": [{\"type\": \"Split\", \"pattern\": {\"Regex\": "
        "\"\\\\p{N}{1,3}\"}, \"behavior\": \"Isolated\", \"invert\": false}, {\"type\": "
        "\"Split\", \"pattern\": {\"Regex\": \" ?\\\\p{L}+|\\\\s+(?!\\\\S)|\\\\s+\"}, "
        "\"behavior\": \"Isolated\", \"invert\": false}, {\"type\": \"ByteLevel\", "
        "\"add_prefix_space\": false, \"trim_offsets\": true, \"use_regex\": false}]},\n"
        "\"post_processor\": null,\n\"decoder\": {\"type\": \"ByteLevel\"},\n\"model\": "
        "{\"type\": \"BPE\", \"dropout\": null, \"unk_token\": null, "
        "\"continuing_subword_prefix\": null, \"end_of_word_suffix\": null, "
        "\"fuse_unk\": false, \"byte_fallback\": false, \"ignore_merges\": false,\n"
        "\"vocab\": {");
    for (int byte = 0; byte < 256; byte++) {
        write_byte(file, byte);
        (void)fprintf(file, ", ");
    }
    (void)fprintf(file, "\"aa\": 256, \"ab\": 257, \"aaaa\": 258, \"bc\": 259, "
                        "\"\\u0120a\": 260},\n\"merges\": [\"a a\", \"a b\", \"aa aa\", "
                        "\"b c\", \"\\u0120 a\"]}}\n");
    assert_int_equal(fclose(file), 0);
}

tiny_model tiny_model_empty(void)
{
    tiny_model model = {.dir = "/tmp/tiny_model_XXXXXX"};
    assert_non_null(mkdtemp(model.dir));
    return model;
}

tiny_model tiny_model_write(void)
{
    tiny_model model = tiny_model_empty();
    tiny_model_put_text(&model, "config.json", config_text);
    tiny_model_put_text(&model, "generation_config.json", "{\"eos_token_id\": [262]}\n");
    tiny_model_put_text(&model, "tokenizer_config.json", tokenizer_config_text);
    write_weights(&model);
    write_tokenizer(&model);
    return model;
}

void tiny_model_remove(const tiny_model *model)
{
    DIR *dir = opendir(model->dir);
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
        if (entry->d_name[0] != '.') {
            tiny_model_drop(model, entry->d_name);
        }
    }
    (void)closedir(dir);
    assert_int_equal(rmdir(model->dir), 0);
}
