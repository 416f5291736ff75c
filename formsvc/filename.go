package formsvc

import (
	"mime"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a file's metadata.
const (
	maxFileName    = 255 // bytes, as in most file systems
	maxContentType = 255
)

const (
	defaultFileName    = "file"
	defaultContentType = "application/octet-stream"
)

// check refuses metadata that can't be cleaned up.
func (in *FileInput) check() error {
	var v ValidationError
	v.checkLine("/module", in.Module, maxModuleName)
	return v.err()
}

// cleanFileName returns [File.Name] for an uploader's name.
func cleanFileName(name string) string {
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

// trimFileName removes characters that some systems drop from the ends of a name.
func trimFileName(name string) string {
	return strings.TrimLeftFunc(strings.TrimRightFunc(name, func(r rune) bool {
		return r == '.' || unicode.IsSpace(r)
	}), unicode.IsSpace)
}

// cleanContentType returns a declared media type in canonical form.
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
