// SPDX-License-Identifier: BSD-3-Clause
// Preloaded: records which lock of ours is taken while another is held, with
// Python's lock or without, and on which waits a thread holds one. The file
// $OPENREG_LOCKS gets a line for each.
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace {

struct Held {
  void* lock;
  std::string place;
};

// Its own lock is not recorded, because it is taken through the real function.
pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
std::set<std::string>* lines;
thread_local bool inside = false;  // what the recorder itself locks
thread_local std::vector<Held>* held;

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/// The function of this name in the C library.
#define REAL(function)                                         \
  ([] {                                                        \
    static auto* found = real<decltype(&function)>(#function); \
    return found;                                              \
  }())

struct Library {
  std::string name;  // empty for those that are not ours
  char* base = nullptr;
};

/// Found once for each address: dladdr() goes through all symbols of a library.
const Library& libraryOf(void* address) {
  thread_local auto* libraries = new std::unordered_map<void*, Library>;
  const auto [found, added] = libraries->try_emplace(address);
  Dl_info info;
  if (added && dladdr(address, &info) && info.dli_fname) {
    const char* slash = strrchr(info.dli_fname, '/');
    const std::string name = slash ? slash + 1 : info.dli_fname;
    if (name.find("openreg") != std::string::npos)
      found->second = {name, static_cast<char*>(info.dli_fbase)};
  }
  return found->second;
}

/// "libopenreg.so 1234,5678" for who called a function of the system, and the
/// callers of that one, in a library of ours; else nothing. The compiler may
/// leave std::mutex::lock a function, and so it may be the first.
std::string placeOf(void* caller) {
  const Library& library = libraryOf(caller);
  if (library.name.empty()) return {};
  void* frames[12];
  void** const end = frames + backtrace(frames, 12);
  void** const first = std::find(frames, end, caller);
  std::string place = library.name;
  for (void** frame = first; frame < std::min(end, first + 3); frame++) {
    if (libraryOf(*frame).base != library.base) break;
    char text[32];
    snprintf(text, sizeof text, "%c%zx", frame == first ? ' ' : ',',
             static_cast<char*>(*frame) - library.base - 1);
    place += text;
  }
  return place;
}

bool holdsGil() {
  static auto* initialized =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  static auto* check =
      reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Check"));
  return initialized && check && initialized() && check();
}

void write(const std::string& line) {
  static const char* path = getenv("OPENREG_LOCKS");
  if (!path) return;
  REAL(pthread_mutex_lock)(&guard);
  if (!lines) lines = new std::set<std::string>;
  if (lines->insert(line).second) {
    if (FILE* file = fopen(path, "a")) {
      fprintf(file, "%s\n", line.c_str());
      fclose(file);
    }
  }
  REAL(pthread_mutex_unlock)(&guard);
}

void taken(void* lock, void* caller) {
  if (inside) return;
  inside = true;
  const std::string place = placeOf(caller);
  if (!place.empty()) {
    if (!held)
      held = new std::vector<Held>;  // Kept until the process ends: other
                                     // destructors lock.
    write(std::string("lock ") + (holdsGil() ? "gil " : "free ") + place);
    for (const Held& other : *held) write("under " + other.place + " " + place);
    held->push_back({lock, place});
  }
  inside = false;
}

void released(void* lock) {
  if (inside || !held) return;
  inside = true;
  const auto found =
      std::find_if(held->rbegin(), held->rend(),
                   [&](const Held& each) { return each.lock == lock; });
  if (found != held->rend()) held->erase(std::next(found).base());
  inside = false;
}

/// A wait for `mutex`'s condition: all other locks of ours stay held meanwhile.
void waits(void* mutex, void* caller) {
  if (inside) return;
  inside = true;
  const std::string place = placeOf(caller);
  if (!place.empty() && holdsGil()) write("waits-with-gil " + place);
  if (held) {
    for (const Held& other : *held)
      if (other.lock != mutex)
        write("waits-under " + other.place + " " +
              (place.empty() ? "other 0" : place));
  }
  inside = false;
}

}  // namespace

extern "C" {

#define LOCK(function, Lock)                                   \
  int function(Lock* lock) noexcept {                          \
    const int result = REAL(function)(lock);                   \
    if (result == 0) taken(lock, __builtin_return_address(0)); \
    return result;                                             \
  }
#define UNLOCK(function, Lock)        \
  int function(Lock* lock) noexcept { \
    released(lock);                   \
    return REAL(function)(lock);      \
  }
LOCK(pthread_mutex_lock, pthread_mutex_t)
LOCK(pthread_rwlock_rdlock, pthread_rwlock_t)
LOCK(pthread_rwlock_wrlock, pthread_rwlock_t)
UNLOCK(pthread_mutex_unlock, pthread_mutex_t)
UNLOCK(pthread_rwlock_unlock, pthread_rwlock_t)

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  waits(mutex, __builtin_return_address(0));
  return REAL(pthread_cond_wait)(condition, mutex);
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* time) {
  waits(mutex, __builtin_return_address(0));
  return REAL(pthread_cond_timedwait)(condition, mutex, time);
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           clockid_t clock, const timespec* time) {
  waits(mutex, __builtin_return_address(0));
  return REAL(pthread_cond_clockwait)(condition, mutex, clock, time);
}
}
