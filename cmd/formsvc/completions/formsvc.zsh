#compdef formsvc
# Completions of formsvc for zsh: source <(formsvc completion zsh), or this as _formsvc in a directory of $fpath.
_formsvc() {
	local line
	local -a found
	while IFS= read -r line; do
		found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
	done < <("${words[1]}" complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)
	if ((${#found})); then
		_describe formsvc found
	else
		_files
	fi
}
if [[ ${funcstack[1]} == _formsvc ]]; then
	_formsvc "$@"
else
	compdef _formsvc formsvc
fi
