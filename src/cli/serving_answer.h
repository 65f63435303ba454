/* serving_answer.h - one request of `mla qualify serving`, and what came of it. */
#ifndef MLA_CLI_SERVING_ANSWER_H
#define MLA_CLI_SERVING_ANSWER_H

#include "cli/client.h"

enum {
    SERVING_TEXT = 320,
    SERVING_WORD = 16,
    /* Of a coding prompt with its template, which is counted on and held against usage. */
    SERVING_CHAT_PROMPT_TOKENS = 128,
};

typedef struct serving_ask {
    int64_t new_tokens;
    const char *salt;      /* prompts of other salts share no pages; borrowed */
    int32_t number;        /* which prompt */
    int32_t prompt_tokens; /* of token ids */
    int32_t vocab_size;    /* of token ids */
    bool is_chat;          /* a coding prompt; else token ids */
    bool is_stream;        /* server-sent events; else one body */
} serving_ask;

typedef struct serving_answer {
    serving_ask ask;
    client_call call;
    size_t num_scanned; /* bytes of the body whose events were read */
    byte_buffer text;
    byte_buffer times;                 /* int64_t: when each piece of text came */
    int64_t prompt_tokens, new_tokens; /* as usage says; -1: it does not */
    char finish[SERVING_WORD];
    bool has_mark; /* data: [DONE] */
    int64_t last_ns;
    char failure[SERVING_TEXT]; /* ""; or why it is not what was asked for */
} serving_answer;

serving_answer serving_answer_none(mla_context *context);
void serving_answer_end(serving_answer *answer);

/* Sends ask. The answer is none, or done. */
mla_status serving_answer_begin(serving_answer *answer, const serving_ask *ask,
                                const client_address *to, mla_error *err);
/* Reads what has come; once the call is done, whether it is what was asked for. */
mla_status serving_answer_take(serving_answer *answer, mla_error *err);

bool serving_answer_has_begun(const serving_answer *answer); /* text came, or all of it */
int32_t serving_answer_num_times(const serving_answer *answer);
int64_t serving_answer_time(const serving_answer *answer, int32_t i);
bool serving_answer_is_same(const serving_answer *a, const serving_answer *b);

/* serving_prompt.c: the JSON body, which jansson's free function releases; NULL: no memory */
char *serving_ask_write(const serving_ask *ask);
void serving_text_release(char *text);

#endif
