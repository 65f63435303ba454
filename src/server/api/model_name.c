/* model_name.c - the names of the one model: see model_name.h. */
#include "server/api/model_name.h"

#include <string.h>

/* The last part of a path [*num], closing slashes left out. */
static const char *base_of(const char *path, size_t *num)
{
    size_t end = strlen(path);
    while (end > 1 && path[end - 1] == '/') {
        end--;
    }
    size_t start = end;
    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    *num = end - start;
    return path + start;
}

bool model_is_served(const api_settings *settings, const char *name)
{
    const char *path = settings->model_path;
    size_t num = 0;
    if (strcmp(name, settings->model_name) == 0 || (path && strcmp(name, path) == 0)) {
        return true;
    }
    const char *base = path ? base_of(path, &num) : NULL;
    return base && strlen(name) == num && memcmp(name, base, num) == 0;
}

bool model_refuse(const api_settings *settings, const char *name, api_failure *failure)
{
    return api_fail(failure, API_NOT_FOUND, "model", "model_not_found",
                    "The model \"%.120s\" does not exist; this server has \"%.120s\".",
                    name, settings->model_name);
}

bool model_name_check(const api_settings *settings, const api_fields *fields)
{
    const char *name = NULL;
    if (!field_string(fields, "model", SIZE_MAX, &name)) {
        return false;
    }
    return !name || model_is_served(settings, name) ||
           model_refuse(settings, name, fields->failure);
}
