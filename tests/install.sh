#!/usr/bin/env bash
# Installs the programs that the tests start: database servers, a browser, Node, Mermaid, a client for Node, Schemathesis.
# What is there already is left alone.
set -euo pipefail

missing=()
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || missing+=(postgresql)
command -v mariadbd >/dev/null || missing+=(mariadb-server)
command -v chromium >/dev/null || missing+=(chromium fonts-dejavu-core)
command -v npm >/dev/null || missing+=(npm)

if ((${#missing[@]})); then
  if ! command -v apt-get >/dev/null || ((EUID != 0)); then
    echo "the tests need ${missing[*]} (names of Debian packages); please install them" >&2
    exit 1
  fi
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
fi

# Packages of npm that the tests run: what is needed of one is moved from its archive to the cache.
cache="${XDG_CACHE_HOME:-$HOME/.cache}/octo-tests"
from_npm() { # package, path in its archive, name in the cache
  if [[ -e $cache/$3 ]]; then return; fi
  local scratch
  scratch=$(mktemp -d)
  npm pack --silent --pack-destination "$scratch" "$1" >/dev/null
  tar -xzf "$scratch"/*.tgz -C "$scratch" "$2"
  mkdir -p "$cache"
  mv "$scratch/$2" "$cache/$3"
  rm -rf "$scratch"
}
from_npm mermaid@11 package/dist/mermaid.min.js mermaid.min.js # judges the charts that octo draws
from_npm openai@6 package openai                               # judges what the proxy answers

# Schemathesis asks the proxy what its own description says. It lives apart, as it shares libraries with octo in versions of
# its own.
if [[ ! -e $cache/schemathesis/bin/st ]]; then
  "${PYTHON:-python3}" -m venv "$cache/schemathesis"
  "$cache/schemathesis/bin/python" -m pip install --quiet --disable-pip-version-check 'schemathesis>=4.32,<5'
fi
