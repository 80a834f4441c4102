#!/usr/bin/env bash
# The library shows the functions of its header and nothing else, and needs libc alone: it lives in processes that have
# another C++ runtime, another protobuf or another gRPC.
set -euo pipefail

library=client/librubato_client.so
header="$(grep -oE '\brubato_[a-z_]+\(' client/rubato_client.h | tr -d '(' | sort -u)"
declared="$(grep -A2 -E '^RUBATO_API ' client/rubato_client.h | grep -oE '\brubato_[a-z_]+\(' | tr -d '(' | sort -u)"
exported="$(nm -D --defined-only "$library" | awk '{print $3}' | sort)"
if [[ "$declared" != "$exported" ]]; then
  echo "FAILED: exported symbols are not the header's functions:" >&2
  diff <(echo "$declared") <(echo "$exported") >&2 || true
  exit 1
fi
if [[ "$(wc -l <<<"$exported")" -lt 20 ]] || grep -qvxF "$exported" <<<"$header"; then
  echo "FAILED: the header speaks of functions that are not there" >&2
  exit 1
fi
needed="$(readelf -d "$library" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')"
# A build with a sanitizer needs its runtime too.
if grep -vxE 'libc\.so\.6|libm\.so\.6|ld-linux-x86-64\.so\.2|lib(a|t|ub)san\.so\.[0-9]+' <<<"$needed"; then
  echo "FAILED: the library needs more than libc" >&2
  exit 1
fi
# Weak ones of transactional memory (_ZGTt) are for whoever has it, and may be missing.
if nm -D --undefined-only "$library" | grep -E ' U _Z|__cxa_throw|__gxx|GLIBCXX|CXXABI'; then
  echo "FAILED: the library takes parts of the C++ runtime from its process" >&2
  exit 1
fi
