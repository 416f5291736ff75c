package transfer

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
)

// A table is what is copied of a table: the same columns in the same order in each database.
type table struct {
	name  string
	names []string // of its columns
	bools []bool   // which of them Postgres has as boolean
}

// tables returns the tables that are copied, parents first. Those about the database itself, sign-in links, sessions and
// counters are not. A test compares them with the schemas.
func tables() (list []table) {
	for _, text := range []string{
		"accounts id name contact campaigns file_bytes created_at",
		"keys id account_id name prefix hash permissions created_at expires_at revoked_at used_at",
		"campaigns id account_id title description status opens_at closes_at modules metadata version created_at updated_at email_optional?",
		"webhooks id account_id url events campaign_id secret previous_secret previous_until headers disabled? version created_at updated_at",
		"responses id account_id campaign_id reference status email first_name last_name answers version created_at updated_at completed_at events person",
		"files id account_id campaign_id response_id name content_type module size sha256 created_at blocks",
		"comments id account_id campaign_id response_id body author created_at",
		"signatures id account_id campaign_id response_id email folded first_name last_name file_id provider sha256 signed_at created_at",
		"events id account_id campaign_id response_id xact seq type created_at about payload traceparent",
		"deliveries webhook_id id event_id event_type due_at lease created_at updated_at size kind state attempts",
		"attempts delivery_id number started_at duration status error answer",
		"notices delivery_id account_id webhook_id event_id event_type attempts status error at due_at noted?",
		"failing webhook_id account_id failures first_at since last_at status error told_at until lease",
		"idempotency id account_id request refused? response_id campaign_id created_at result",
		"quota subject start used",
		"audit id account_id actor action target details created_at",
	} {
		fields := strings.Fields(text)
		t := table{name: "formsvc_" + fields[0]}
		for _, column := range fields[1:] {
			name, isBool := strings.CutSuffix(column, "?")
			t.names, t.bools = append(t.names, name), append(t.bools, isBool)
		}
		list = append(list, t)
	}
	return list
}

// A sum is a checksum of the rows of a table, in any order: the sums of the four words of their SHA-256.
type sum struct {
	rows int64
	hash [4]uint64
}

// add adds a row, without the numbers of an event: they differ between two databases that have the same data.
func (s *sum) add(t *table, row []any) {
	kept := slices.Clone(row)
	for i, name := range t.names {
		if name == "xact" || name == "seq" {
			kept[i] = nil
		}
	}
	b, _ := json.Marshal(kept) // a column is a number, a text or bytes in each database
	digest := sha256.Sum256(b)
	s.rows++
	for i := range s.hash {
		s.hash[i] += binary.LittleEndian.Uint64(digest[i*8:])
	}
}
