/* Preloaded into a daemon, it makes the wall clock wrong by CLOCK_SHIFT_S seconds. With CLOCK_FILE, the clock stands at
   the seconds since 1970 that this file holds at the time (a long in the machine's form) until the file is changed. Other
   clocks stay as they are. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile long *shared(void) {
    const char *path = getenv("CLOCK_FILE");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0)
        return NULL;
    void *mapped = mmap(NULL, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    return mapped == MAP_FAILED ? NULL : mapped;
}

int clock_gettime(clockid_t id, struct timespec *time) {
    static long shift;
    static const volatile long *standing;
    static int known;
    if (!known) {
        const char *text = getenv("CLOCK_SHIFT_S");
        shift = text ? atol(text) : 0;
        standing = shared();
        known = 1;
    }
    int result = (int)syscall(SYS_clock_gettime, id, time);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) {
        if (standing)
            *time = (struct timespec){.tv_sec = *standing};
        time->tv_sec += shift;
    }
    return result;
}
