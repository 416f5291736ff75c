# Functions of .ci/run and .ci/long, which source this file in the root of the checkout.

export CI=true                     # a test whose server is missing fails instead of being skipped
[[ -n ${HOME-} ]] || export HOME=~ # Go's caches need it, and not every runner sets it
# Stamping a version into test binaries needs a repository that git trusts; a checkout by another user is not one.
export GOFLAGS="${GOFLAGS:+$GOFLAGS }-buildvcs=false"

command -v go >/dev/null || PATH=$PATH:/usr/local/go/bin

# need installs missing programs as root on Debian or Ubuntu. Standard input has lines with a program, its Debian package and its use.
need() {
	local program package use programs missing=()
	programs=$(cat)
	while read -r program package _; do
		command -v "$program" >/dev/null || missing+=("$package")
	done <<<"$programs"
	if ((${#missing[@]} > 0)) && [[ $EUID == 0 ]] && command -v apt-get >/dev/null; then
		echo "installing ${missing[*]}"
		apt-get -qq update </dev/null >/dev/null || true
		DEBIAN_FRONTEND=noninteractive timeout 900 apt-get -qq install -y --no-install-recommends "${missing[@]}" libc6-dev </dev/null >/dev/null || true
	fi
	while read -r program package use; do
		command -v "$program" >/dev/null || echo "no $program here, and $package can't be installed: it $use; tests that need it FAIL" >&2
	done <<<"$programs"
}

summary=() failed=0

# step MINUTES COMMAND... runs a command with a time limit, and notes its result.
step() {
	local limit=$1 started=$SECONDS status=0 how=ok
	shift
	echo
	echo "--- $*"
	timeout --kill-after=60s "${limit}m" "$@" </dev/null || status=$?
	case $status in
	0) ;;
	124 | 137) how="FAILED: stopped after $((SECONDS - started)) s" failed=1 ;;
	*) how="FAILED with status $status" failed=1 ;;
	esac
	summary+=("$(printf '%-24s %4d s  %s' "$*" $((SECONDS - started)) "$how")")
}

# finish prints the results and exits.
finish() {
	echo
	printf 'ci: %s\n' "${summary[@]}" "all: $SECONDS s"
	exit "$failed"
}
