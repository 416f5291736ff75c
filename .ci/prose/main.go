// Command prose checks how the tree is written: go run . [-v]
//
// It counts the words of the documents and of their sentences, and looks for phrases that STYLE.md forbids in documents, Go comments, Go
// strings, pages and YAML files. The limits and phrases are in rules.go. To excuse a phrase, put "prose:ok" on
// its line, or on the first or last line of its paragraph, comment or string. With -v it prints a table of all documents.
//
// Exit status 1 if a check fails.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	verbose := flag.Bool("v", false, "print the words of each document, of its median sentence and of its longest")
	root := flag.String("root", "../..", "the `directory` to check")
	flag.Parse()
	r, err := check(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
	if *verbose {
		fmt.Printf("%-40s %6s %7s %8s\n", "document", "words", "median", "longest")
		for _, d := range r.documents {
			fmt.Printf("%-40s %6d %7d %8d\n", d.name, d.words, d.median, d.longest)
		}
		fmt.Printf("%-40s %6d\n", "total", r.words)
	}
	for _, f := range r.failures {
		fmt.Println(f)
	}
	if len(r.failures) > 0 {
		fmt.Printf("prose: %d failures; STYLE.md says how we write\n", len(r.failures))
		os.Exit(1)
	}
	fmt.Printf("prose: %d words in %d documents: ok\n", r.words, len(r.documents))
}
