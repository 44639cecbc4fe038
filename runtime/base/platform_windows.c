/* SPDX-License-Identifier: Apache-2.0 */
/* The platform by Windows 10, with the POSIX threads that come with mingw-w64:
 * WaitOnAddress() for sleeping, a pair of loopback sockets as a descriptor that
 * wakes a loop. A descriptor that becomes readable at a time is left to
 * timer_thread.c. A process cannot fork, and priorities of threads are not set.
 *
 * A descriptor here is a socket. The handles of Windows fit into an int. */
#include <winsock2.h>

#include <windows.h>

#include <errno.h>
#include <fcntl.h>
#include <io.h>
#include <malloc.h>
#include <share.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/platform.h"

/* ---- sleeping on a number ----------------------------------------------- */

static DWORD ms_of(int64_t ns)
{
    const int64_t ns_in_ms = 1000000, most_ms = INT32_MAX;

    if (ns < 0)
        return INFINITE;
    return (DWORD)(ns / ns_in_ms < most_ms ? (ns + ns_in_ms - 1) / ns_in_ms
                                           : most_ms);
}

/* The system's limit has the grain of its ticks, and may be over early: then
 * the rest of the time is slept as well. Systems differ in the code that they
 * give after a limit, so the clock decides. */
bool uva__platform_sleep(_Atomic uint32_t *at, uint32_t seen, int64_t ns)
{
    const uint64_t begun = uva__clock_ns();
    uint64_t slept = 0;
    bool woken = false;

    while (!woken && (ns < 0 || slept < (uint64_t)ns)) {
        woken = WaitOnAddress((volatile void *)at, &seen, sizeof(seen),
                              ms_of(ns < 0 ? ns : ns - (int64_t)slept));
        slept = uva__clock_ns() - begun;
    }
    return ns < 0 || slept < (uint64_t)ns ||
           atomic_load_explicit(at, memory_order_acquire) != seen;
}

void uva__platform_wake_one(_Atomic uint32_t *at)
{
    WakeByAddressSingle((void *)at);
}

void uva__platform_wake_all(_Atomic uint32_t *at)
{
    WakeByAddressAll((void *)at);
}

/* ---- threads ------------------------------------------------------------ */

/* Windows signals do not reach our threads. */
int uva__platform_start_thread(pthread_t *thread, void *(*run)(void *arg),
                               void *arg)
{
    const int code = pthread_create(thread, NULL, run, arg);

    return code == EAGAIN ? ENOMEM : code;
}

void uva__platform_name_thread(const char *name)
{
    (void)pthread_setname_np(pthread_self(), name);
}

int32_t uva__platform_thread_number(void)
{
    return (int32_t)GetCurrentThreadId();
}

void uva__platform_sleep_exactly(void)
{
}

int32_t uva__platform_cores(void)
{
    DWORD_PTR own = 0, all = 0;
    int32_t n = 0;

    (void)GetProcessAffinityMask(GetCurrentProcess(), &own, &all);
    for (; own != 0; own &= own - 1)
        n++;
    return n > 0 ? n : 1;
}

/* ---- time --------------------------------------------------------------- */

int64_t uva__platform_coarse_clock_ns(void)
{
    return (int64_t)uva__clock_ns();
}

/* ---- memory -------------------------------------------------------------- */

/* Every block is aligned so, since freeing does not state the alignment. */
void *uva__platform_alloc(size_t align, size_t size)
{
    if (align < _Alignof(max_align_t))
        align = _Alignof(max_align_t);
    return size <= PTRDIFF_MAX ? _aligned_malloc(size, align) : NULL;
}

void uva__platform_free(void *block)
{
    _aligned_free(block);
}

/* ---- a fork -------------------------------------------------------------- */

void uva__platform_on_fork(void (*before)(void), void (*in_parent)(void),
                           void (*in_child)(void))
{
    (void)before;
    (void)in_parent;
    (void)in_child;
}

/* ---- an exit --------------------------------------------------------------
 */

void uva__platform_on_exit(void (*fn)(void))
{
    (void)atexit(fn);
}

/* ---- memory that a fork clears ------------------------------------------ */

void *uva__platform_map_wiped(size_t size)
{
    return calloc(1, size);
}

void uva__platform_unmap(void *memory, size_t size)
{
    (void)size;
    free(memory);
}

/* ---- a descriptor that wakes a loop ------------------------------------- */

static pthread_once_t winsock_once = PTHREAD_ONCE_INIT;

static void winsock_init(void)
{
    WSADATA data;

    (void)WSAStartup(MAKEWORD(2, 2), &data);
}

/* Codes of sockets that have no errno of their own are EIO. */
static int socket_code(void)
{
    switch (WSAGetLastError()) {
    case WSAEMFILE:
        return EMFILE;
    case WSAENOBUFS:
    case WSA_NOT_ENOUGH_MEMORY:
        return ENOMEM;
    default:
        return EIO;
    }
}

static SOCKET socket_open(void)
{
    return WSASocketW(AF_INET, SOCK_STREAM, IPPROTO_TCP, NULL, 0,
                      WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
}

/* Another process may connect to the listener before the writer does. */
static bool socket_is_from(SOCKET reader, SOCKET writer)
{
    struct sockaddr_in from = {0}, own = {0};
    int from_size = sizeof(from), own_size = sizeof(own);

    return getpeername(reader, (struct sockaddr *)&from, &from_size) == 0 &&
           getsockname(writer, (struct sockaddr *)&own, &own_size) == 0 &&
           from.sin_port == own.sin_port &&
           from.sin_addr.s_addr == own.sin_addr.s_addr;
}

/* Connects the writer to the listener, and gives the other end. */
static bool sockets_connect(SOCKET listener, SOCKET writer, SOCKET *reader)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int size = sizeof(address);
    u_long on = 1;

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(listener, (struct sockaddr *)&address, size) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &size) != 0 ||
        listen(listener, 1) != 0 ||
        connect(writer, (struct sockaddr *)&address, size) != 0)
        return false;
    *reader = accept(listener, NULL, NULL);
    return *reader != INVALID_SOCKET && socket_is_from(*reader, writer) &&
           SetHandleInformation((HANDLE)*reader, HANDLE_FLAG_INHERIT, 0) &&
           setsockopt(writer, IPPROTO_TCP, TCP_NODELAY, (const char *)&on,
                      sizeof(on)) == 0 &&
           ioctlsocket(writer, (long)FIONBIO, &on) == 0 &&
           ioctlsocket(*reader, (long)FIONBIO, &on) == 0;
}

static void socket_close(SOCKET socket)
{
    if (socket != INVALID_SOCKET)
        (void)closesocket(socket);
}

int uva__wake_fd_open(struct uva__wake_fd *wake_fd)
{
    SOCKET listener, writer, reader = INVALID_SOCKET;
    int code = 0;

    (void)pthread_once(&winsock_once, winsock_init);
    listener = socket_open();
    writer = socket_open();
    if (listener == INVALID_SOCKET || writer == INVALID_SOCKET ||
        !sockets_connect(listener, writer, &reader))
        code = socket_code();
    socket_close(listener);
    if (code != 0) {
        socket_close(writer);
        socket_close(reader);
        reader = writer = INVALID_SOCKET;
    }
    wake_fd->reader = (int)reader;
    wake_fd->writer = (int)writer;
    return code;
}

void uva__wake_fd_close(struct uva__wake_fd *wake_fd)
{
    socket_close((SOCKET)wake_fd->reader);
    socket_close((SOCKET)wake_fd->writer);
}

static bool has_bytes(const struct uva__wake_fd *wake_fd)
{
    u_long n = 0;

    return ioctlsocket((SOCKET)wake_fd->reader, FIONREAD, &n) == 0 && n > 0;
}

/* Without room for another byte there are some to be read, which do as well.
 * Wine reports no room also while another thread's call of send() returns, the
 * byte of which may have been read already. */
void uva__wake_fd_raise(const struct uva__wake_fd *wake_fd)
{
    const DWORD last = GetLastError();
    const int saved = errno;

    while (send((SOCKET)wake_fd->writer, "", 1, 0) < 0 &&
           WSAGetLastError() == WSAEWOULDBLOCK && !has_bytes(wake_fd))
        (void)SwitchToThread();
    errno = saved;
    SetLastError(last);
}

void uva__wake_fd_clear(const struct uva__wake_fd *wake_fd)
{
    char bytes[64];

    while (recv((SOCKET)wake_fd->reader, bytes, sizeof(bytes), 0) > 0)
        ;
}

/* ---- files --------------------------------------------------------------- */

int uva__platform_open_file(const char *path, int *fd, int64_t *size_bytes)
{
    struct _stat64 found;
    int code =
        _sopen_s(fd, path, _O_WRONLY | _O_CREAT | _O_BINARY | _O_NOINHERIT,
                 _SH_DENYWR, _S_IREAD | _S_IWRITE);

    if (code != 0)
        return GetLastError() == ERROR_SHARING_VIOLATION ? EBUSY : code;
    if (_fstat64(*fd, &found) != 0)
        code = errno;
    else if ((found.st_mode & _S_IFMT) != _S_IFREG)
        code = EINVAL;
    if (code != 0)
        (void)_close(*fd);
    else
        *size_bytes = found.st_size;
    return code;
}

void uva__platform_close_file(int fd)
{
    (void)_close(fd);
}

int uva__platform_write_file(int fd, const char *text, size_t size, int64_t at)
{
    enum { PIECE = 1 << 20 };

    if (_lseeki64(fd, at, SEEK_SET) < 0)
        return errno;
    while (size > 0) {
        const int n = _write(fd, text, (unsigned)(size < PIECE ? size : PIECE));

        if (n < 0)
            return errno;
        text += n;
        size -= (size_t)n;
    }
    return 0;
}

int uva__platform_empty_file(int fd)
{
    return _chsize_s(fd, 0);
}

void uva__platform_lock_stdio(FILE *file)
{
    _lock_file(file);
}

void uva__platform_unlock_stdio(FILE *file)
{
    _unlock_file(file);
}

/* ---- libraries ----------------------------------------------------------- */

void *uva__platform_load(const char *path, char *why, size_t size)
{
    HMODULE library = LoadLibraryA(path);

    if (library == NULL)
        (void)snprintf(why, size, "%s: error %lu of LoadLibrary()", path,
                       GetLastError());
    return library;
}

void *uva__platform_symbol(void *library, const char *name)
{
    const FARPROC function = GetProcAddress(library, name);
    void *address;

    memcpy(&address, &function, sizeof(address));
    return address;
}

/* ---- the process -------------------------------------------------------- */

int64_t uva__platform_process(void)
{
    return (int64_t)GetCurrentProcessId();
}

/* Programs of Windows have the rights of their user. */
const char *uva__platform_trusted_env(const char *name)
{
    return getenv(name);
}

/* A loaded library is found again by its name, so only libraries under another
 * name are missed. */
bool uva__platform_find_loaded(const char *prefix, char *path, size_t size)
{
    (void)prefix;
    (void)path;
    (void)size;
    return false;
}

/* ---- descriptors ----------------------------------------------------------
 */

/* A process may have as many handles as there is memory for. */
int uva__platform_try_descriptors(void)
{
    return 0;
}
