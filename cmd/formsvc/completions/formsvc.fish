# Completions of formsvc for fish: formsvc completion fish | source
function __formsvc_complete
	set -l words (commandline -opc) "$(commandline -ct)"
	set -l found ($words[1] complete -- $words[2..-1] 2>/dev/null)
	if test (count $found) -gt 0
		printf '%s\n' $found
	else
		__fish_complete_path "$(commandline -ct)"
	end
end
complete -c formsvc -f -a '(__formsvc_complete)'
