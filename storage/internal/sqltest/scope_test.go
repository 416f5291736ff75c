package sqltest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every statement of the SQL stores that touches a table of account records names
// account_id (F6), or is listed in unscoped with the reason.
func TestStatementsNameTheAccount(t *testing.T) {
	tables := ownedTables(t)
	reasons := unscoped()
	used := make(map[string]int)
	statements := 0
	for _, dir := range []string{"../bunstore", "../../sqlite", "../../postgres"} {
		p := parsePackage(t, dir)
		for _, u := range p.units() {
			text := p.text(u.node, 4)
			touched := tables.FindAllString(u.literals, -1)
			if u.model { // its type tells the table
				touched = append(touched, "model")
			}
			for _, table := range touched {
				statements++
				key := p.name + "." + u.name + " " + strings.TrimPrefix(table, "formsvc_")
				if strings.Contains(text, "account_id") {
					continue
				}
				if used[key]++; used[key] > reasons[key] {
					t.Errorf("%s does not name account_id:\n%s", key, strings.TrimSpace(text))
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(reasons)) {
		if used[key] < reasons[key] {
			t.Errorf("%s is excepted and need not be", key)
		}
	}
	if statements < 60 { // there are more: fewer means that this looks in the wrong place
		t.Errorf("only %d statements", statements)
	}
}

// ownedTables matches the names of the tables that have the column account_id.
func ownedTables(t *testing.T) *regexp.Regexp {
	t.Helper()
	schema, err := os.ReadFile("../../sqlite/migrations/0001_init.sql")
	must(t, err)
	var names []string
	for _, m := range regexp.MustCompile(`(?s)CREATE TABLE (formsvc_\w+) \((.*?)\n\)`).FindAllStringSubmatch(string(schema), -1) {
		if regexp.MustCompile(`(?m)^ +account_id\b`).MatchString(m[2]) {
			names = append(names, m[1])
		}
	}
	if len(names) < 10 {
		t.Fatalf("tables %v", names)
	}
	return regexp.MustCompile(`\b(` + strings.Join(names, "|") + `)\b`)
}

// A source is the parsed files of a package.
type source struct {
	name   string
	values map[string]ast.Node // of constants and variables, by name
	bodies map[string]ast.Node // of functions, by name; of methods without their type
	funcs  []*ast.FuncDecl
	consts []*ast.ValueSpec
}

func parsePackage(t *testing.T, dir string) *source {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	must(t, err)
	p := &source{name: filepath.Base(dir), values: make(map[string]ast.Node), bodies: make(map[string]ast.Node)}
	for _, name := range files {
		// portable.go copies whole databases, with the records of all accounts.
		if strings.HasSuffix(name, "_test.go") || filepath.Base(name) == "portable.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				p.funcs = append(p.funcs, d)
				if d.Body != nil {
					p.bodies[d.Name.Name] = d.Body
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if v, ok := spec.(*ast.ValueSpec); ok && len(v.Values) == len(v.Names) {
						p.consts = append(p.consts, v)
						for i, n := range v.Names {
							p.values[n.Name] = v.Values[i]
						}
					}
				}
			}
		}
	}
	return p
}

// A unit is what may be one statement: the value of a constant, or the largest
// expression in a function.
type unit struct {
	name     string
	node     ast.Node
	literals string
	model    bool // whether bun builds a statement from a type
}

func (p *source) units() (list []unit) {
	add := func(name string, n ast.Node) {
		u := unit{name: name, node: n, literals: p.text(n, 0)}
		calls := make(map[string]bool)
		ast.Inspect(n, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				calls[calledName(call.Fun)] = true
			}
			return true
		})
		u.model = (calls["Model"] || calls["selectCampaigns"]) && !calls["NewInsert"] // whole rows include their account
		list = append(list, u)
	}
	for _, v := range p.consts {
		for i, n := range v.Names {
			add(n.Name, v.Values[i])
		}
	}
	for _, f := range p.funcs {
		if f.Body == nil {
			continue
		}
		ast.Inspect(f.Body, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			inner := false // a function literal's body has its own statements
			ast.Inspect(e, func(n ast.Node) bool {
				_, is := n.(*ast.FuncLit)
				inner = inner || is
				return !inner
			})
			if !inner {
				add(f.Name.Name, e)
			}
			return inner
		})
	}
	return list
}

// text returns the strings in a node and in what it refers to.
func (p *source) text(n ast.Node, depth int) string {
	var b strings.Builder
	refer := func(name string, to map[string]ast.Node) {
		if node := to[name]; node != nil && depth > 0 {
			b.WriteString(p.text(node, depth-1))
		}
	}
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				b.WriteString(s + " ")
			}
		case *ast.CallExpr:
			refer(calledName(n.Fun), p.bodies)
		case *ast.Ident:
			refer(n.Name, p.values)
		}
		return true
	})
	return b.String()
}

func calledName(fun ast.Expr) string {
	switch fun := fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// unscoped returns the functions and constants with statements that need not name the
// account, and how many, each with the reason.
func unscoped() map[string]int {
	byKey := make(map[string]int)
	for _, keys := range map[string][]string{
		"it is only a part of a statement that names the account": {
			"bunstore.skip responses", "sqlite.enabled webhooks", "sqlite.exists webhooks",
		},
		"a function that it calls, or that is called with it, adds the account": {
			"bunstore.selectCampaigns model",
		},
		"it is for rows that were found with the account, in the same unit": {
			"bunstore.updateResponse responses", "bunstore.DeleteResponse files", "bunstore.DeleteResponse comments",
			"bunstore.DeleteResponse signatures", "bunstore.DeleteWebhook failing", "bunstore.redeliverFailed events",
			"bunstore.RevokeKey model", "bunstore.UpdateCampaign model", "bunstore.Redeliver model", "bunstore.UpdateWebhook model",
			"bunstore.withLog model", "bunstore.RedeemLink model",
		},
		"an erasure names the account, or looks at it in the rows, before it removes any": {
			"bunstore.take responses", "bunstore.belongings comments", "bunstore.belongings signatures", "bunstore.events events",
			"bunstore.notices notices", "bunstore.empty idempotency", "bunstore.empty idempotency",
		},
		"the identifier is a hash of the account and the client's key": {
			"bunstore.selectRecord idempotency", "bunstore.deleteRecord idempotency", "sqlite.findRecords idempotency",
			"postgres.selectRecord idempotency",
		},
		"its table is not of records of accounts": {
			"bunstore.UpdateAccount model", "bunstore.UpdateAccount model", "bunstore.accountWhere model", "bunstore.Accounts model", "bunstore.forgetKeys model",
			"bunstore.register model", "bunstore.compareKeys model", "bunstore.EndSessions model",
		},
		"it counts what is in a whole database": {"sqlite.count campaigns", "sqlite.count files"},
		"it finds out who somebody is": {
			"bunstore.KeyByHash model", "bunstore.SessionByHash model", "bunstore.RedeemLink model",
		},
		"a feed that was brought back goes on for all accounts": {
			"sqlite.Restored events", "sqlite.Restored events", "sqlite.Restored events", "postgres.Restored events",
		},
		"AllEvents is of all accounts":                       {"sqlite.Statements events"},
		"the clock is compared with the newest event of all": {"sqlite.clock events"},
		"the delivery engine works for all accounts": {
			"bunstore.countPending webhooks", "bunstore.oldestDue webhooks", "bunstore.ClaimDigests failing",
			"sqlite.noteNotice notices", "sqlite.selectPayloads events", "postgres.claimDue webhooks", "postgres.noteNotices notices",
			"postgres.selectPayloads events",
		},
		"it deletes what is old, or belongs to nothing, for all accounts": {
			"bunstore.firstDeliveries webhooks", "bunstore.oldRecords idempotency", "bunstore.oldRecords idempotency",
			"bunstore.oldEvents failing", "bunstore.oldEvents failing", "bunstore.oldEvents webhooks",
			"bunstore.oldEvents events", "bunstore.oldEvents events", "bunstore.oldEvents events",
			"bunstore.oldEvents notices", "bunstore.oldEvents notices", "bunstore.findFiles files",
			"bunstore.oldSessions links", "bunstore.oldSessions sessions",
		},
		"it opens or seals the secrets of one row, or of all accounts, or locks a table": {
			"bunstore.sealBatch webhooks", "bunstore.sealOne webhooks", "bunstore.openOne webhooks", "bunstore.sealedRows model",
			"postgres.moveFeed events",
		},
	} {
		for _, key := range keys {
			byKey[key]++
		}
	}
	return byKey
}
