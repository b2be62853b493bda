// What this build of the library claims to be.
#ifndef AOTRITON_CONFIG_H_
#define AOTRITON_CONFIG_H_

// A build with a suffix renames the namespace, so that two copies can live in one process.
#ifndef AOTRITON_ENABLE_SUFFIX
#define AOTRITON_ENABLE_SUFFIX 0
#endif
#ifndef AOTRITON_NAME_SUFFIX
#define AOTRITON_NAME_SUFFIX
#endif

#if AOTRITON_ENABLE_SUFFIX
#define AOTRITON_INTERNAL_JOIN2(a, b) a##b
#define AOTRITON_INTERNAL_JOIN(a, b) AOTRITON_INTERNAL_JOIN2(a, b)
#define AOTRITON_NS AOTRITON_INTERNAL_JOIN(aotriton, AOTRITON_NAME_SUFFIX)
#else
#define AOTRITON_NS aotriton
#endif

// The AOTriton release whose callers this library serves: they choose their code by these.
#define AOTRITON_VERSION_MAJOR 0u
#define AOTRITON_VERSION_MINOR 12u
#define AOTRITON_VERSION_PATCH 0u

// A token, not a text.
#ifndef AOTRITON_GIT_SHA1
#define AOTRITON_GIT_SHA1 unknown
#endif

#if defined(_WIN32)
#define AOTRITON_API
#else
#define AOTRITON_API __attribute__((visibility("default")))
#endif

#endif  // AOTRITON_CONFIG_H_
