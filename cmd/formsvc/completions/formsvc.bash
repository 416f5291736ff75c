# Completions of formsvc for bash: source <(formsvc completion bash)
_formsvc() {
	local line
	COMPREPLY=()
	while IFS= read -r line; do
		COMPREPLY+=("${line%%$'\t'*}") # without what is said of it
	done < <("$1" complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _formsvc formsvc
