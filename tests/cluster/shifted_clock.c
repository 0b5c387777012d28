/* Preloaded into a daemon, it makes the wall clock wrong by CLOCK_SHIFT_S seconds. Other clocks stay as they are. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *time) {
    static long shift;
    static int known;
    if (!known) {
        const char *text = getenv("CLOCK_SHIFT_S");
        shift = text ? atol(text) : 0;
        known = 1;
    }
    int result = (int)syscall(SYS_clock_gettime, id, time);
    if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        time->tv_sec += shift;
    return result;
}
