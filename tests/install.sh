#!/usr/bin/env bash
# Installs the programs that the tests start: database servers, a browser, Mermaid. What is there already is left alone.
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

# Mermaid judges the charts that octo draws: one file of its npm package.
mermaid="${XDG_CACHE_HOME:-$HOME/.cache}/octo-tests/mermaid.min.js"
if [[ ! -e $mermaid ]]; then
  scratch=$(mktemp -d)
  trap 'rm -rf "$scratch"' EXIT
  npm pack --silent --pack-destination "$scratch" mermaid@11 >/dev/null
  tar -xzf "$scratch"/mermaid-*.tgz -C "$scratch" package/dist/mermaid.min.js
  mkdir -p "${mermaid%/*}"
  mv "$scratch/package/dist/mermaid.min.js" "$mermaid"
fi
