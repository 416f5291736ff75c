package formsvc

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"time"
)

// ModulesOf returns the modules of a form whose answers are a T: a struct with a question for each exported field, in their
// order. Embedded structs count as their fields. It fails, and so do [Decode] and [Encode], if T isn't such a struct; the error
// names the field.
//
// A string field asks for text, a bool for yes or no, a number for a number in the range of its type, and a [time.Time] for a day;
// named types of these do the same. A slice takes several values. Fields are required, except slices and pointers, of which nil
// means no answer. Tags say the rest:
//
//	Name   string        `form:"name" label:"Your name" help:"As in your passport" placeholder:"Ada Lovelace"`
//	Email  string        `form:"contact,email,optional"`
//	Story  string        `form:"story,longtext,maxlength=5000"`
//	Seats  int           `form:"seats,min=1,max=4"`
//	Lunch  string        `form:"lunch" options:"meat,fish,none"`
//	IBAN   string        `form:"iban,format=iban"`
//	Places int           `form:"places" default:"1"`
//	Reason *string       `form:"reason" showif:"lunch=fish|none"`
//	CV     *formsvc.File `form:"cv,file" accept:".pdf,image/*"`
//	Source string        `form:"source,hidden"`
//	Notes  string        `form:"-"`
//
// The tag form has the module's name, by default the field's, and then any of: required or optional; text, longtext, email, url,
// phone, time, number, date, boolean, for strings only; rating, scale, for strings and integers; consent, for strings and bools; file; hidden;
// min, max, maxlength, format ([Format]), other. The tags pattern and patternhelp are those members. With options the question is a choice, and with showif it is
// shown only after one of those answers. A file question's field has any type: nothing is decoded into it or encoded from it.
//
// The modules are the caller's to change, for example to add options from a database. A form doesn't show the limits of 64 bits:
// give such a field a max, or expect Decode to fail for a larger number.
func ModulesOf[T any]() ([]Module, error) {
	_, modules, err := typedFields(reflect.TypeFor[T]())
	return modules, err
}

// Decode returns the answers as a T, see [ModulesOf]. It ignores answers without a field, and leaves fields without an answer
// zero, even required ones: forms change, and so do responses. For the same reason it checks no rules of the tags, only that the
// values fit into the fields: a number such as 1e3 fits into an int, 0.5 doesn't. Otherwise it fails with a *[ValidationError] whose
// pointers are those of [Responses.Create], and the result has the other fields. Days are in UTC.
func Decode[T any](a Answers) (T, error) {
	var result T
	fields, _, err := typedFields(reflect.TypeFor[T]())
	if err != nil {
		return result, err
	}
	var v ValidationError
	root := reflect.ValueOf(&result).Elem()
	err = a.Each(func(name string, values []string) error {
		i := slices.IndexFunc(fields, func(f typedField) bool { return f.module.Name == name && f.module.Type != FileModule })
		if i >= 0 {
			fields[i].decode(&v, root.FieldByIndex(fields[i].index), values)
		}
		return nil
	})
	if err != nil {
		return result, err
	}
	return result, v.err()
}

// Encode returns the answers for which [Decode] returns x, with two exceptions: of times it keeps the day, and of file questions
// nothing. An empty string and a zero time aren't answers, and neither are zero values of optional fields and of hidden questions. It
// fails with a *[ValidationError] if the modules of [ModulesOf] don't accept a value, as with NaN.
func Encode[T any](x T) ([]Answer, error) {
	fields, modules, err := typedFields(reflect.TypeFor[T]())
	if err != nil {
		return nil, err
	}
	var v ValidationError
	var list []Answer
	zero := make(map[string]bool)
	root := reflect.ValueOf(&x).Elem()
	for i := range fields {
		f := &fields[i]
		value := root.FieldByIndex(f.index)
		zero[f.module.Name] = value.IsZero()
		empty := !f.module.Required || // of a number or a boolean, zero may be the answer
			slices.Contains([]reflect.Kind{reflect.String, reflect.Struct, reflect.Slice, reflect.Pointer}, value.Kind())
		if f.module.Type == FileModule || value.IsZero() && empty {
			continue
		}
		list = append(list, Answer{Name: f.module.Name, Value: f.encode(&v, value)})
	}
	hidden := (&CampaignInput{Modules: modules}).Hidden(list)
	list = slices.DeleteFunc(list, func(a Answer) bool { return hidden[a.Name] && zero[a.Name] })
	return list, v.err()
}

// decode sets the field to the values of an answer, or adds what doesn't fit to v.
func (f *typedField) decode(v *ValidationError, field reflect.Value, values []string) {
	if len(values) > 1 && field.Kind() != reflect.Slice {
		v.add(f.pointer(), "too_many", "takes one value only")
		return
	}
	list, fits := reflect.MakeSlice(reflect.SliceOf(f.single), len(values), len(values)), true
	for n, text := range values {
		if code, detail := setText(list.Index(n), text); code != "" {
			v.add(fmt.Sprintf("%s/%d", f.pointer(), n), code, "%s", detail)
			fits = false
		}
	}
	switch {
	case !fits:
	case field.Kind() == reflect.Slice:
		field.Set(list)
	case len(values) == 0: // left empty on purpose
	case field.Kind() == reflect.Pointer:
		field.Set(list.Index(0).Addr())
	default:
		field.Set(list.Index(0))
	}
}

// encode returns the values of the field's answer, and adds those that the module doesn't accept to v.
func (f *typedField) encode(v *ValidationError, field reflect.Value) []string {
	if field.Kind() != reflect.Slice {
		field = reflect.Append(reflect.New(reflect.SliceOf(f.single)).Elem(), reflect.Indirect(field))
	}
	values := make([]string, field.Len())
	for n := range values {
		values[n] = textOf(field.Index(n))
		code, detail := textFault(values[n])
		if code == "" {
			code, detail = f.module.Check(values[n])
		}
		if code != "" {
			v.add(fmt.Sprintf("%s/%d", f.pointer(), n), code, "%s", detail)
		}
	}
	return values
}

func (f *typedField) pointer() string { return "/responses/" + pointerEscape(f.module.Name) + "/value" }

// setText sets a single value to what a text says, or returns why it doesn't fit, as in a [FieldError].
func setText(value reflect.Value, text string) (code, detail string) {
	fits := moduleFor(value.Type())
	if code, detail = fits.Check(text); code != "" {
		return code, detail
	}
	switch {
	case value.Kind() == reflect.String:
		value.SetString(text)
	case value.Kind() == reflect.Bool:
		value.SetBool(text == "true")
	case value.CanInt():
		value.SetInt(decimal(text).Num().Int64())
	case value.CanUint():
		value.SetUint(decimal(text).Num().Uint64())
	case value.CanFloat():
		x, err := strconv.ParseFloat(text, value.Type().Bits())
		if err != nil {
			return "out_of_range", "is too large a number"
		}
		value.SetFloat(x)
	default:
		day, _ := time.Parse(time.DateOnly, text) // checked above
		value.Set(reflect.ValueOf(day).Convert(value.Type()))
	}
	return "", ""
}

// textOf returns a single value as answers have it.
func textOf(value reflect.Value) string {
	switch {
	case value.Kind() == reflect.String:
		return value.String()
	case value.Kind() == reflect.Bool:
		return strconv.FormatBool(value.Bool())
	case value.CanInt():
		return strconv.FormatInt(value.Int(), 10)
	case value.CanUint():
		return strconv.FormatUint(value.Uint(), 10)
	case value.CanFloat():
		return strconv.FormatFloat(value.Float(), 'g', -1, value.Type().Bits())
	}
	return value.Convert(reflect.TypeFor[time.Time]()).Interface().(time.Time).Format(time.DateOnly)
}
