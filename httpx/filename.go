package httpx

import (
	"net/url"
	"strings"
	"unicode/utf8"
)

// A dispositionHeader is a parsed Content-Disposition. Absent parameters are "".
type dispositionHeader struct {
	name     string // the name of a form's part
	filename string // from filename* if that is present and valid, otherwise from filename
}

// parseDisposition reads a Content-Disposition (RFC 6266) of that kind, as browsers and JavaScript write it. wrong
// describes the error, or is "".
func parseDisposition(header, kind string) (said dispositionHeader, wrong string) {
	got, rest, _ := strings.Cut(header, ";")
	if !strings.EqualFold(strings.TrimSpace(got), kind) {
		return said, "must be " + kind
	}
	var seen [3]bool // name, filename, filename*
	extended := ""
	for rest = strings.TrimSpace(rest); rest != ""; {
		var parameter, value string
		if parameter, value, rest, wrong = nextParameter(rest); wrong != "" {
			return said, wrong
		}
		var twice *bool
		switch parameter {
		case "name":
			twice, said.name = &seen[0], value
		case "filename":
			twice, said.filename = &seen[1], value
		case "filename*":
			twice, extended = &seen[2], value
		default:
			if strings.HasPrefix(parameter, "filename*") {
				return said, "has the name in pieces; send all of it in filename or filename*"
			}
			continue
		}
		if *twice {
			return said, "has the parameter " + parameter + " twice"
		}
		*twice = true
	}
	if seen[2] {
		name, bad := decodeExtended(extended)
		switch {
		case bad == "":
			said.filename = name
		case !seen[1]: // otherwise it is for old clients that can't read filename* (RFC 6266 §4.3)
			return said, "has a filename* that " + bad
		}
	}
	return said, ""
}

// nextParameter cuts the first parameter off a list. It returns the name in lower case.
func nextParameter(list string) (name, value, rest, wrong string) {
	end := strings.IndexAny(list, "=;")
	if end < 0 || list[end] == ';' {
		if end = strings.IndexByte(list, ';'); end < 0 {
			end = len(list)
		}
		if strings.TrimSpace(list[:end]) == "" { // two semicolons in a row
			return "", "", strings.TrimSpace(list[min(end+1, len(list)):]), ""
		}
		return "", "", "", "has a parameter without a value"
	}
	name, list = strings.ToLower(strings.TrimSpace(list[:end])), strings.TrimSpace(list[end+1:])
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !tokenRune(r) }) {
		return "", "", "", "has a parameter whose name is not one"
	}
	if strings.HasPrefix(list, `"`) {
		value, list, wrong = cutQuoted(list)
	} else {
		value, list = cutAt(list, ';')
		value = strings.TrimSpace(value)
		if wrong = badBare(name, value); wrong == "" {
			return name, value, strings.TrimSpace(list), ""
		}
	}
	if wrong != "" {
		if len(name) > 20 {
			name = "a parameter"
		}
		return "", "", "", "has a value of " + name + " that " + wrong
	}
	if list = strings.TrimSpace(list); list != "" && list[0] != ';' {
		return "", "", "", "has text between the quotes of a parameter and the next semicolon"
	}
	return name, value, strings.TrimSpace(strings.TrimPrefix(list, ";")), ""
}

// cutAt is [strings.Cut] at a byte. It doesn't report whether the byte was found.
func cutAt(s string, sep byte) (before, after string) {
	if i := strings.IndexByte(s, sep); i >= 0 {
		return s[:i], s[i+1:]
	}
	return s, ""
}

// badBare describes the error in an unquoted value, or returns "". An extended parameter may have characters that RFC
// 8187 wants escaped and encodeURIComponent in JavaScript doesn't escape: they are unambiguous.
func badBare(name, value string) string {
	extended := strings.HasSuffix(name, "*")
	for _, r := range value {
		if tokenRune(r) || extended && r > ' ' && r < 0x7f && r != '"' && r != '\\' {
			continue
		}
		if extended {
			return "has a character that must be escaped as %XX"
		}
		return "must be in double quotes"
	}
	if value == "" {
		return "is missing"
	}
	return ""
}

// cutQuoted reads a string in double quotes. A backslash before a character that needs no escape is text, as in Windows
// paths.
func cutQuoted(list string) (value, rest, wrong string) {
	var b strings.Builder
	for i := 1; i < len(list); i++ {
		switch c := list[i]; {
		case c == '"':
			return b.String(), list[i+1:], ""
		case c == '\r' || c == '\n':
			return "", "", "has a line break"
		case c == '\\' && i+1 < len(list) && (list[i+1] == '"' || list[i+1] == '\\'):
			i++
			b.WriteByte(list[i])
		default:
			b.WriteByte(c)
		}
	}
	return "", "", "has no closing quote"
}

// tokenRune reports whether r may be in a token (RFC 9110 §5.6.2).
func tokenRune(r rune) bool {
	return r > ' ' && r < 0x7f && !strings.ContainsRune(`()<>@,;:\"/[]?={}`, r)
}

// decodeExtended reads a value in the extended notation (RFC 8187 §3.2.1).
func decodeExtended(value string) (text, wrong string) {
	charset, rest := cutAt(value, '\'')
	_, escaped, ok := strings.Cut(rest, "'")
	if !ok {
		return "", "must be written as UTF-8''name"
	}
	if !strings.EqualFold(charset, "utf-8") && !strings.EqualFold(charset, "us-ascii") {
		return "", "must be in UTF-8"
	}
	text, err := url.PathUnescape(escaped)
	if err != nil {
		return "", "has a % without two hexadecimal digits after it"
	}
	if !utf8.ValidString(text) {
		return "", "is not UTF-8"
	}
	return text, ""
}
