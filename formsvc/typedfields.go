package formsvc

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A typedField is a field of a struct, and the question that asks for it.
type typedField struct {
	index  []int
	single reflect.Type // of one value
	module Module
}

// typedFields returns the fields of a struct that are questions, and their modules, see [ModulesOf].
func typedFields(t reflect.Type) ([]typedField, []Module, error) {
	if t.Kind() != reflect.Struct {
		return nil, nil, fmt.Errorf("formsvc: form of %v: must be a struct", t)
	}
	var fields []typedField
	var modules []Module
	var names []string
	var leaves [][]int // embedded structs whose fields don't count
	for _, field := range reflect.VisibleFields(t) {
		tag := field.Tag.Get("form")
		embedded := field.Anonymous && field.Type.Kind() == reflect.Struct && tag == "" && moduleFor(field.Type).Type == ""
		within := func(leaf []int) bool {
			return len(field.Index) > len(leaf) && slices.Equal(field.Index[:len(leaf)], leaf)
		}
		if embedded || slices.ContainsFunc(leaves, within) {
			continue
		}
		leaves = append(leaves, field.Index)
		if tag == "-" || !field.IsExported() && !field.Anonymous && tag == "" {
			continue
		}
		f, err := newTypedField(&field)
		if err != nil {
			return nil, nil, fmt.Errorf("formsvc: form of %v: field %s: %w", t, field.Name, err)
		}
		fields, modules, names = append(fields, f), append(modules, f.module), append(names, field.Name)
	}
	var v ValidationError
	modules = v.checkModules(modules)
	for i := range fields {
		fields[i].module = modules[i]
	}
	if err := v.err(); err != nil {
		var i int
		if n, _ := fmt.Sscanf(v.Fields[0].Pointer, "/modules/%d/", &i); n == 1 {
			return nil, nil, fmt.Errorf("formsvc: form of %v: field %s: %w", t, names[i], err)
		}
		return nil, nil, fmt.Errorf("formsvc: form of %v: %w", t, err)
	}
	return fields, modules, nil
}

func newTypedField(field *reflect.StructField) (typedField, error) {
	single, kind := field.Type, field.Type.Kind()
	if kind == reflect.Slice || kind == reflect.Pointer {
		single = single.Elem()
	}
	name, rules, _ := strings.Cut(field.Tag.Get("form"), ",")
	fits := moduleFor(single)
	m := Module{
		Name: cmp.Or(name, field.Name), Label: field.Tag.Get("label"), Help: field.Tag.Get("help"), Placeholder: field.Tag.Get("placeholder"),
		Type: fits.Type, Required: single == field.Type, Multiple: kind == reflect.Slice, Integer: fits.Integer,
		Pattern: field.Tag.Get("pattern"), PatternHelp: field.Tag.Get("patternhelp"),
	}
	if options, ok := field.Tag.Lookup("options"); ok {
		m.Type, m.Options, m.Integer = ChoiceModule, strings.Split(options, ","), false
	}
	if accept, ok := field.Tag.Lookup("accept"); ok {
		m.Accept = strings.Split(accept, ",")
	}
	if values, ok := field.Tag.Lookup("default"); ok {
		m.Default = strings.Split(values, "|")
	}
	if condition, ok := field.Tag.Lookup("showif"); ok {
		other, values, _ := strings.Cut(condition, "=")
		m.ShowIf = &Condition{Module: other, Equals: strings.Split(values, "|")}
	}
	for rule := range strings.SplitSeq(rules, ",") {
		if err := m.setRule(rule, &fits); err != nil {
			return typedField{}, err
		}
	}
	switch {
	case m.Type == "" || !field.IsExported():
		return typedField{}, fmt.Errorf("%v can't be a question; give it the tag form:\"-\"", field.Type)
	case m.Integer && single.Bits() < 64:
		m.Min, m.Max = cmp.Or(m.Min, fits.Min), cmp.Or(m.Max, fits.Max)
	case m.Integer && fits.Min == "0":
		m.Min = cmp.Or(m.Min, "0")
	}
	return typedField{index: field.Index, single: single, module: m}, nil
}

// setRule applies an item of the tag form. fits is what the type of the field allows.
func (m *Module) setRule(rule string, fits *Module) (err error) {
	key, value, _ := strings.Cut(rule, "=")
	switch t := ModuleType(key); t {
	case "":
	case "required", "optional":
		m.Required = key == "required"
	case TextModule, LongTextModule, EmailModule, URLModule, PhoneModule, TimeModule, NumberModule, DateModule, BooleanModule, RatingModule, ScaleModule, ConsentModule:
		of := fits.Type == t || fits.Type == BooleanModule && t == ConsentModule || fits.Integer && t.Steps()
		m.Integer = m.Integer && !t.Steps()
		if !of && fits.Type != TextModule {
			return fmt.Errorf("only a string can be of type %s", t)
		}
		m.Type = t
	case "other":
		m.Other = true
	case "format":
		m.Format = value
	case "hidden":
		m.Hidden, m.Required = true, false
	case FileModule:
		m.Type, m.Integer = FileModule, false
	case "min", "max":
		if _, detail := fits.Check(value); detail != "" {
			return fmt.Errorf("%s %s", key, detail)
		}
		*map[string]*Bound{"min": &m.Min, "max": &m.Max}[key] = Bound(value)
	case "maxlength":
		if m.MaxLength, err = strconv.Atoi(value); err != nil {
			return errors.New("maxlength must be a number")
		}
	default:
		return fmt.Errorf("the tag form has an unknown rule %q", rule)
	}
	return nil
}

// moduleFor returns a module that accepts the texts that a type can hold, with the type "" if there is none.
func moduleFor(t reflect.Type) Module {
	switch kind := t.Kind(); {
	case kind == reflect.Struct && t.ConvertibleTo(reflect.TypeFor[time.Time]()):
		return Module{Type: DateModule}
	case kind == reflect.String:
		return Module{Type: TextModule}
	case kind == reflect.Bool:
		return Module{Type: BooleanModule}
	case reflect.Int <= kind && kind <= reflect.Int64:
		least, greatest := int64(math.MinInt64)>>(64-t.Bits()), int64(math.MaxInt64)>>(64-t.Bits())
		return Module{
			Type: NumberModule, Integer: true, Min: Bound(strconv.FormatInt(least, 10)), Max: Bound(strconv.FormatInt(greatest, 10)),
		}
	case reflect.Uint <= kind && kind <= reflect.Uint64:
		greatest := uint64(math.MaxUint64) >> (64 - t.Bits())
		return Module{Type: NumberModule, Integer: true, Min: "0", Max: Bound(strconv.FormatUint(greatest, 10))}
	case kind == reflect.Float32 || kind == reflect.Float64:
		return Module{Type: NumberModule}
	}
	return Module{}
}
