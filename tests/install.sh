#!/usr/bin/env bash
# Installs the programs that the tests start: database servers and a browser. What is there already is left alone.
set -euo pipefail

missing=()
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || missing+=(postgresql)
command -v mariadbd >/dev/null || missing+=(mariadb-server)
command -v chromium >/dev/null || missing+=(chromium fonts-dejavu-core)
((${#missing[@]})) || exit 0

if ! command -v apt-get >/dev/null || ((EUID != 0)); then
  echo "the tests need ${missing[*]} (names of Debian packages); please install them" >&2
  exit 1
fi
apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
