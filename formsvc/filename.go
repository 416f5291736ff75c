package formsvc

import (
	"mime"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of what is said about a file.
const (
	maxFileName    = 255 // bytes, as in most file systems
	maxContentType = 255
)

const (
	defaultFileName    = "file"
	defaultContentType = "application/octet-stream"
)

// check refuses what is said about a file where nothing reasonable can be made
// of it.
func (in *FileInput) check() error {
	var v ValidationError
	v.checkLine("/module", in.Module, maxModuleName)
	return v.err()
}

// CleanFileName returns the name under which a file is kept and offered, made
// of what an uploader calls it: what follows the last slash or backslash,
// without control characters and those that turn the direction of writing,
// without spaces around it or dots at its end, and at most 255 bytes long, of
// which the extension is kept. U+FFFD stands for what is not UTF-8. If nothing
// remains it is "file".
//
// The name is for people: nothing is stored under it.
func CleanFileName(name string) string {
	name = strings.ToValidUTF8(name, "\uFFFD")
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return -1
		}
		return r
	}, name)
	name = trimFileName(name)
	if len(name) > maxFileName {
		ext := path.Ext(name)
		if len(ext) > maxFileName/4 {
			ext = ""
		}
		end := maxFileName - len(ext)
		for !utf8.RuneStart(name[end]) {
			end--
		}
		name = trimFileName(name[:end]) + ext
	}
	if name == "" {
		return defaultFileName
	}
	return name
}

// trimFileName removes what some systems drop from the ends of a name anyway.
func trimFileName(name string) string {
	return strings.TrimLeftFunc(strings.TrimRightFunc(name, func(r rune) bool {
		return r == '.' || unicode.IsSpace(r)
	}), unicode.IsSpace)
}

// cleanContentType returns a declared media type in its usual form.
func cleanContentType(s string) string {
	mediaType, parameters, err := mime.ParseMediaType(s)
	if err != nil || !strings.Contains(mediaType, "/") || len(s) > maxContentType {
		return defaultContentType
	}
	formatted := mime.FormatMediaType(mediaType, parameters)
	if formatted == "" || len(formatted) > maxContentType || CheckText(formatted) != nil {
		return defaultContentType
	}
	return formatted
}
