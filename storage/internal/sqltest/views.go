package sqltest

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/uptrace/bun/dialect"

	"github.com/formsvc/toolkit/formsvc"
	"github.com/formsvc/toolkit/storage/internal/bunstore"
)

// wantTable compares the rows of a query, as text.
func (d Database) wantTable(t *testing.T, want [][]string, query string, args ...any) {
	t.Helper()
	if got := d.table(t, query, args...); !reflect.DeepEqual(got, want) {
		t.Errorf("%s\n returned %q\n     want %q", query, got, want)
	}
}

func (d Database) table(t *testing.T, query string, args ...any) [][]string {
	t.Helper()
	table, err := bunstore.List(t.Context(), d.DB.DB, func(rows *sql.Rows, row *[]string) error {
		names, err := rows.Columns()
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range into {
			into[i] = &values[i]
		}
		err = errors.Join(err, rows.Scan(into...))
		for _, v := range values {
			switch of := v.(type) {
			case time.Time:
				v = instant(of)
			case []byte:
				v = string(of)
			}
			*row = append(*row, canonical(fmt.Sprint(v)))
		}
		return err
	}, query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return table
}

// instant returns a time as the API and the views of SQLite have it, or a date.
func instant(t time.Time) string {
	if t.IsZero() {
		return "<nil>"
	}
	return strings.TrimSuffix(t.UTC().Format("2006-01-02T15:04:05.000Z"), "T00:00:00.000Z")
}

// canonical returns JSON objects in one form.
func canonical(text string) string {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return text
	}
	b, _ := json.Marshal(object)
	return string(b)
}

// viewsAsTheAPI reads odd values from the promised views.
func viewsAsTheAPI(t *testing.T, d Database) {
	s := newScene(t, d)
	s.campaign.ID, s.campaign.Metadata = s.id(), map[string]string{"team": `"a" ' \ ünï 😀`}
	noError(t, s.CreateCampaign(t.Context(), s.campaign, formsvc.Change{}))
	c := &s.campaign
	var responses, answers [][]string
	for i, list := range [][]formsvc.Answer{
		nil,
		{{Name: "none", Value: []string{}}, {Name: "empty", Value: []string{""}}},
		{{Name: `it's "odd".[0]$`, Value: []string{`"`, "'", `\`, "\n\t", "ünï 😀 \u2028", "{}", "NULL", "1.0", "true"}}},
		{{Name: "many", Value: strings.Split(strings.Repeat("x,y,", 60)+"z", ",")}, {Name: "b", Value: []string{"1"}}},
	} {
		r, change := s.response(fmt.Sprint("R", i))
		r.Answers = formsvc.NewAnswers(list...)
		r.CreatedAt = s.now.Add(time.Duration(i) * 1001 * time.Millisecond)
		r.User = formsvc.User{}
		if i%2 == 1 {
			r.UpdatedAt, r.CompletedAt, r.Status = s.now.Add(time.Hour), s.now.Add(time.Hour), formsvc.StatusSpam
			r.User = formsvc.User{Email: "O'Hara@example.com", FirstName: "Zoë", LastName: `"`}
		}
		noError(t, s.CreateResponse(t.Context(), r, 1, change))
		r = must(s.Response(t.Context(), r.Key()))
		responses = append(responses, []string{
			string(r.ID), string(c.ID), string(s.account), r.Reference, r.Status, r.User.Email, r.User.FirstName, r.User.LastName,
			canonical(r.Answers.JSON()), "{}", instant(r.CreatedAt), instant(r.UpdatedAt), instant(r.CompletedAt),
		})
		for _, a := range list {
			for n, value := range a.Value {
				answers = append(answers, []string{string(r.ID), string(c.ID), string(s.account), a.Name, fmt.Sprint(n), value})
			}
		}
	}
	const of = " WHERE campaign_id = $1 ORDER BY "
	d.wantTable(t, [][]string{{
		string(c.ID), string(s.account), c.Title, string(c.Status), instant(c.CreatedAt), instant(c.UpdatedAt), "4", `{"team":"\"a\" ' \\ ünï 😀"}`,
	}}, "SELECT campaign_id, account_id, title, status, created_at, updated_at, response_count, metadata FROM formsvc_v1_campaigns"+of+"1", string(c.ID))
	d.wantTable(t, responses, "SELECT response_id, campaign_id, account_id, reference, status, email, first_name, last_name, answers, metadata, "+
		"created_at, updated_at, completed_at FROM formsvc_v1_responses"+of+"reference", string(c.ID))
	d.wantTable(t, answers, "SELECT response_id, campaign_id, account_id, module, position, value FROM formsvc_v1_answers"+
		of+"response_id, CASE module WHEN 'none' THEN 0 WHEN 'b' THEN 2 ELSE 1 END, position", string(c.ID))
	d.wantTable(t, [][]string{{"0"}}, "SELECT response_count FROM formsvc_v1_campaigns WHERE campaign_id <> $1", string(c.ID))
}

// viewsByIndex checks that look-ups by campaign and by response read no table of responses as a whole.
func viewsByIndex(t *testing.T, d Database) {
	s := newScene(t, d)
	for i := range 10 {
		s.campaign.ID = s.id()
		noError(t, s.CreateCampaign(t.Context(), s.campaign, formsvc.Change{}))
		r, _ := s.response(fmt.Sprint("R", i))
		noError(t, s.CreateResponse(t.Context(), r, 1, formsvc.Change{}))
	}
	explain, key := "EXPLAIN QUERY PLAN ", "unhex($2, '-')"
	if d.DB.Dialect().Name() == dialect.PG {
		// Postgres reads a small table as a whole.
		_, err := d.DB.DB.ExecContext(t.Context(), `INSERT INTO formsvc_responses (id, account_id, campaign_id, reference, status, email,
			first_name, last_name, answers, version, created_at, updated_at, completed_at, events)
			SELECT gen_random_uuid(), account_id, campaign_id, reference || n, 'pending', '', '', '', '{}', 1, 0, 0, 0, ''
			FROM formsvc_responses, generate_series(1, 1000) AS n; ANALYZE formsvc_responses, formsvc_campaigns`)
		noError(t, err)
		explain, key = "EXPLAIN ", "$2::uuid"
	}
	bad := regexp.MustCompile(`SCAN r\b|Seq Scan on formsvc_responses`)
	for _, view := range []string{"formsvc_v1_responses", "formsvc_v1_answers"} {
		for _, where := range []string{"$2 <> '' AND campaign_id = $1", "campaign_id = $1 AND response_key = " + key, "$1 <> '' AND response_key = " + key} {
			plan := fmt.Sprint(d.table(t, explain+"SELECT * FROM "+view+" WHERE "+where, string(s.campaign.ID), string(s.campaign.ID)))
			if bad.MatchString(plan) || !strings.Contains(plan, "formsvc_responses_") {
				t.Errorf("%s WHERE %s: %s", view, where, plan)
			}
		}
	}
}

// viewsInTheGuide runs the queries of the guide.
func viewsInTheGuide(t *testing.T, d Database) {
	s := newScene(t, d)
	text := must(os.ReadFile("../../examples/README.md"))
	for i, color := range []string{"red", "blue", "red", ""} {
		r, _ := s.response(fmt.Sprint("R", i))
		r.CreatedAt = s.now.AddDate(0, 0, i/2)
		if color != "" {
			r.Answers = formsvc.NewAnswers(formsvc.Answer{Name: "color", Value: []string{color}})
		}
		noError(t, s.CreateResponse(t.Context(), r, 1, formsvc.Change{}))
	}
	must(d.DB.DB.ExecContext(t.Context(), "CREATE TABLE orders AS SELECT response_id AS response, 'tea' AS what FROM formsvc_v1_responses WHERE reference = 'R1'"))
	want := [][][]string{
		{{"2026-03-04", "2"}, {"2026-03-05", "2"}},
		{{"red", "2"}, {"blue", "1"}},
		{{"R3"}},
		{{"a@example.com", "R3", "{}"}},
		{{"tea", "R1", "pending"}},
	}
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != len(want) {
		t.Fatalf("%d queries in the guide, want %d", len(blocks), len(want))
	}
	for i, block := range blocks {
		query := block[1]
		if d.DB.Dialect().Name() != dialect.PG {
			query = strings.Replace(query, "o.response::uuid", "unhex(o.response, '-')", 1)
		}
		d.wantTable(t, want[i], query, string(s.campaign.ID))
	}
}
