package main

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

//go:embed completions
var completions embed.FS

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: ${enum}."`
}

// Run prints the script, which makes a shell call completeCmd.
func (c *completionCmd) Run(std streams) error {
	script, err := completions.ReadFile("completions/formsvc." + c.Shell)
	if err != nil {
		return err
	}
	_, err = std.out.Write(script)
	return err
}

// completeCmd is called by the scripts, so that all shells get the same candidates from the program itself.
type completeCmd struct {
	Words []string `arg:"" optional:"" passthrough:"" help:"The words of the command line up to the one to complete, which may be empty."`
}

// Run prints the candidates for the last word, one a line, each with a tab and its meaning.
func (c *completeCmd) Run(app *kong.Kong, std streams) error {
	words := c.Words
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	for _, x := range complete(app.Model.Node, words) {
		if _, err := fmt.Fprintf(std.out, "%s\t%s\n", x.word, x.meaning); err != nil {
			return err
		}
	}
	return nil
}

// A candidate is a possible word.
type candidate struct{ word, meaning string }

// complete returns the candidates for the last of the words after the program's name. If there are none, a shell offers
// file names.
func complete(at *kong.Node, words []string) []candidate {
	if len(words) == 0 {
		words = []string{""}
	}
	last, words := words[len(words)-1], words[:len(words)-1]
	var value *kong.Flag // whose value comes next
	arguments := 0
	for i, word := range words {
		switch {
		case value != nil && word == "=" && i > 0 && strings.HasPrefix(words[i-1], "--"): // bash takes it for a word
		case value != nil:
			value = nil
		case word == "--":
			return nil
		case strings.HasPrefix(word, "-"):
			name, _, given := strings.Cut(word, "=")
			if f := flagOf(at, name); f != nil && !given && !f.IsBool() {
				value = f
			}
		case child(at, word) != nil:
			at = child(at, word)
		default:
			arguments++
		}
	}
	switch name, start, given := strings.Cut(last, "="); {
	case value != nil && last == "=":
		return values(value.Value, "", "")
	case value != nil:
		return values(value.Value, "", last)
	case strings.HasPrefix(last, "-") && given:
		if f := flagOf(at, name); f != nil {
			return values(f.Value, name+"=", start)
		}
		return nil
	case strings.HasPrefix(last, "-"):
		return flags(at, last)
	case len(at.Children) > 0:
		return commands(at, last)
	case arguments < len(at.Positional):
		return values(at.Positional[arguments], "", last)
	}
	return nil
}

// child returns the command of this name, or nil.
func child(n *kong.Node, name string) *kong.Node {
	i := slices.IndexFunc(n.Children, func(c *kong.Node) bool { return c.Name == name || slices.Contains(c.Aliases, name) })
	if i < 0 {
		return nil
	}
	return n.Children[i]
}

// flagOf returns the flag of a command or of its parents, or nil.
func flagOf(n *kong.Node, name string) *kong.Flag {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if "--"+f.Name == name || f.Short != 0 && "-"+string(f.Short) == name {
				return f
			}
		}
	}
	return nil
}

func flags(n *kong.Node, start string) (found []candidate) {
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			if word := "--" + f.Name; strings.HasPrefix(word, start) {
				found = append(found, candidate{word, short(f.Help)})
			}
		}
	}
	return found
}

func commands(n *kong.Node, start string) (found []candidate) {
	for _, c := range n.Children {
		if !c.Hidden && strings.HasPrefix(c.Name, start) {
			found = append(found, candidate{c.Name, short(c.Help)})
		}
	}
	return found
}

// values returns the values of a flag or an argument with an enum.
func values(v *kong.Value, before, start string) (found []candidate) {
	if v.Enum == "" {
		return nil
	}
	for _, word := range v.EnumSlice() {
		if strings.HasPrefix(word, start) {
			found = append(found, candidate{before + word, ""})
		}
	}
	return found
}

// short returns the first sentence of a help text, since shells show one line.
func short(help string) string {
	if i := strings.IndexAny(help, ".:;"); i > 0 {
		help = help[:i]
	}
	return strings.Join(strings.Fields(help), " ")
}
