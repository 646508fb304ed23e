#include <stdio.h>
#include "forms.h"
#define LIMIT 10
#define TWICE(x) \
    ((x) + \
     (x))

#ifdef _WIN32
#include <windows.h>
#else
#include <unistd.h>
#endif

/* Documentation of a type. */
typedef int (*callback)(const char *name, void *data);

struct node {
    struct node *next;
    int (*compare)(const struct node *, const struct node *);
};

enum colour { RED, GREEN = 2 };

int declared(int first, ...);
extern void external(void);

/* Documentation of a function. */
int plain(void) {
    puts("this is gone");
    return LIMIT; // gone
}

static inline unsigned long long
type_above(const char *restrict text,
           size_t length)
{
    unsigned long long sum = length; // gone
    return TWICE(sum); // gone
}

struct node *pointer(struct node **list, int values[static 4])
{
    values[0] = 1; // gone
    return *list; // gone, and more of it
}

int (*returning_a_function(int kind))(const char *, void *)
{
    printf("%d gone", kind);
    return NULL; // gone, and more of it
}

int old_style(first, second)
    int first;
    char *second;
{
    puts(second); // gone
    return first; // gone, and more of it
}

__attribute__((noreturn)) void with_attribute(int code)
{
    puts("this is gone");
    _exit(code); // gone
}

#ifdef LIMIT
static int in_condition(int value)
{
    int more = value + LIMIT; // gone
    return more; // gone, and more of it
}
#endif

int main(int argc, char *argv[])
{
    for (int at = 0; at < argc; at++) { // gone
        puts(argv[at]); // gone
    } // gone
    return 0; // gone
}
