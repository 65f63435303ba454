/* entropy.h - numbers that nobody can guess: ids, and seeds of requests that give none. */
#ifndef MLA_SERVER_API_ENTROPY_H
#define MLA_SERVER_API_ENTROPY_H

#include "server/api/settings.h"

uint64_t api_entropy_of(const api_settings *settings);

#endif
