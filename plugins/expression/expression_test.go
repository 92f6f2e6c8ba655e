package expression_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millrace/millrace/pipeline"
	"github.com/millrace/millrace/plugins/document"
	"github.com/millrace/millrace/plugins/expression"
)

func message() *pipeline.Message {
	return &pipeline.Message{
		ID: "1", Key: "k", Tag: "quake", Topic: "t", Props: map[string]string{"p": "v", "n": "12"},
		Born: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Origin: pipeline.Origin{Delivery: 2},
		Body: []byte(`{"mag":5.4,"n":7,"big":9007199254740993,"s":"text","e":"a\"b\u00e9","t":true,"f":false,"z":null,` +
			`"list":[1,2.5,"x",{"a":1}],"o":{"p":{"q":-3}},"a name":1,"zero":0}`),
	}
}

func eval(tb testing.TB, text string) (any, error) {
	tb.Helper()

	e, err := expression.Parse(text)
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}

	var s expression.Scope

	s.Reset(message())

	v, err := e.Eval(&s)

	return v.Any(), err
}

func TestExpressionsSeeTheWholeMessage(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]any{
		`id + key + tag + topic`:  "1kquaket",
		`delivery`:                2,
		`props.p`:                 "v",
		`props.nothing ?? "none"`: "none",
		`props["p"]`:              "v",
		`born.Year()`:             2026,
		`len(text) > 100`:         true,
		`body.mag >= 5 && body.t`: true,
		`body.n + 1`:              8,
		`body.n / 2`:              3.5,
		`body.n % 4`:              3,
		`-body.o.p.q`:             3,
		`body.big + 0`:            int64(9007199254740993),
		`body.list[1]`:            2.5,
		`body.list[3].a`:          1,
		`body.nothing.at.all`:     nil,
		`body?.nothing?.at`:       nil,
		`body["a name"]`:          1,
		`body.mag >= 6 ? "major" : body.mag >= 4 ? "moderate" : "minor"`: "moderate",
		`body.s in ["a", "text"]`:                  true,
		`body.s matches "^te"`:                     true,
		`upper(body.s) + lower("X") + trim(" y ")`: "TEXTxy",
		`round(body.mag) == 5 && int("12") == 12`:  true,
		`len(body.list)`:                           4,
		`filter(body.list, # == 1)`:                fmt.Sprint([]any{1}),
		`let x = body.n; x * x`:                    49,
		`body.list | map(string(#)) | join(",")`:   "1,2.5,x,map[a:1]",
		`keys(body.o)`:                             fmt.Sprint([]any{"p"}),
		`body.list[-1].a`:                          1,
		`body[key]`:                                nil,
		`{a: body.n}`:                              "map[a:7]",
	} {
		got, err := eval(t, text)
		if err != nil {
			t.Errorf("%s fails: %v", text, err)
		}

		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s is %T %v, want %v", text, got, got, want)
		}
	}
}

func TestMistakesAreToldWithTheirCure(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`magnitude > 1`:   `unknown name "magnitude"; the body's fields are reached as body.magnitude`,
		`taq == "x"`:      `unknown name "taq"; did you mean "tag"? the body's fields are reached as body.taq`,
		`body.mag >`:      `the expression ends too early (column 10)`,
		`key + 1`:         `invalid operation: + (mismatched types string and int) (column 5)`,
		`foo(1)`:          `unknown function "foo"`,
		`key matches "["`: `error parsing regexp`,
	} {
		if _, err := expression.Parse(text); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s fails with %v, want %s", text, err, want)
		}
	}

	if _, err := expression.ParseCondition(`key`); err == nil {
		t.Error("a text is taken for a condition")
	}
}

func TestFailuresNameTheValues(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]string{
		`body.nothing > 1`:   "nil > 1 cannot be said; nil is what the message does not have, and (NAME ?? 0) stands for 0 then",
		`body.s + 1`:         `"text" + 1 cannot be said`,
		`body.s ? 1 : 2`:     `"text" is where true or false should be`,
		`not body.n`:         `7 is where true or false should be`,
		`body.n % body.zero`: `a division by zero: 7 % 0`,
		`lower(body.n)`:      `lower does not take 7`,
		`-body.list`:         `- does not take a list`,
	} {
		if _, err := eval(t, text); err == nil || err.Error() != want {
			t.Errorf("%s fails with %v, want %s", text, err, want)
		}
	}
}

func TestABodyThatIsNoJSONFailsOnlyWhatNeedsIt(t *testing.T) {
	t.Parallel()

	m := &pipeline.Message{Tag: "x", Body: []byte("{")}

	for text, want := range map[string]bool{`tag == "x" or body.a`: true, `body.a == 1`: false, `keys(body)`: false} {
		e, err := expression.Parse(text)
		if err != nil {
			t.Fatal(err)
		}

		var s expression.Scope

		s.Reset(m)

		_, err = e.Eval(&s)
		if _, isSyntax := errors.AsType[*document.SyntaxError](err); (err == nil) != want || err != nil && !isSyntax {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestAConditionIsTrueOrFalse(t *testing.T) {
	t.Parallel()

	c, err := expression.ParseCondition(`body.v`)
	if err != nil {
		t.Fatal(err)
	}

	holds := c.Func()

	for body, want := range map[string]string{
		`{"v":true}`: "true <nil>", `{"v":false}`: "false <nil>", `{"v":1}`: "false body.v is 1, not true or false",
		`{}`: "false body.v is nil, not true or false",
	} {
		got, err := holds(&pipeline.Message{Body: []byte(body)})
		if text := fmt.Sprint(got, " ", err); text != want {
			t.Errorf("%s gives %s, want %s", body, text, want)
		}
	}
}

func TestConditionsAreFast(t *testing.T) {
	t.Parallel()

	for text, want := range map[string]bool{
		`body.a > 1 and (tag in ["x"] or not (key startsWith "y"))`: true,
		`round(body.a * 100) / 100`:                                 true, `body.list | len()`: true, `max(body.a, 1)`: false, `born.Year() == 1`: false,
	} {
		e, err := expression.Parse(text)
		if err != nil {
			t.Fatal(err)
		}

		if e.IsFast() != want {
			t.Errorf("%s is fast: %v", text, e.IsFast())
		}
	}
}

func seeds() []string {
	var all []string

	values := []string{
		"body.mag", "body.n", "body.s", "body.t", "body.z", "body.list", "body.o", "key", "props.n", "props.none", "1", "2.5", `"x"`,
		"true", "nil", "delivery", "body.big", "body.zero", "0", "-1",
	}

	for operator := range strings.FieldsSeq("== != < <= > >= + - * / % contains startsWith endsWith ?? and or") {
		for _, a := range values {
			for _, b := range values {
				all = append(all, a+" "+operator+" "+b)
			}
		}
	}

	for _, a := range values {
		all = append(all, "-"+a, "not "+a, a+` in [1, 2.5, "x", true, 7]`, a+` matches "^t"`, a+" ? 1 : 2")

		for call := range strings.FieldsSeq("lower upper trim round floor ceil abs int float string len") {
			all = append(all, call+"("+a+")")
		}
	}

	return all
}

// agree holds the closures against expr-lang's own machine.
func agree(tb testing.TB, text string) {
	tb.Helper()

	fast, err := expression.Parse(text)
	slow, slowErr := expression.ParseSlow(text)

	if (err == nil) != (slowErr == nil) {
		tb.Fatalf("%s: %v and %v", text, err, slowErr)
	}

	if err != nil || !fast.IsFast() {
		return
	}

	var s expression.Scope

	s.Reset(message())

	a, errA := fast.Eval(&s)
	b, errB := slow.Eval(&s)

	if errA != nil && strings.Contains(errA.Error(), "true or false should be") {
		return // the machine does not look at what stands beside a constant
	}

	if (errA == nil) != (errB == nil) {
		tb.Errorf("%s: closures give %v, %v; the machine %v, %v", text, a.Any(), errA, b.Any(), errB)
	}

	if errA == nil && errB == nil && fmt.Sprintf("%T %v", a.Any(), a.Any()) != fmt.Sprintf("%T %v", b.Any(), b.Any()) {
		tb.Errorf("%s: closures give %T %v; the machine %T %v", text, a.Any(), a.Any(), b.Any(), b.Any())
	}
}

func TestClosuresAgreeWithTheMachine(t *testing.T) {
	t.Parallel()

	for _, text := range seeds() {
		agree(t, text)
	}
}

func FuzzExpression(f *testing.F) {
	for i, text := range seeds() {
		if i%50 == 0 {
			f.Add(text)
		}
	}

	f.Add(`body.a["b"][0]?.c ?? props.x matches "a" ? let x = 1; x : [1, {a: 2}]`)

	f.Fuzz(func(t *testing.T, text string) {
		if len(text) < 200 && !strings.Contains(text, "..") && !strings.Contains(text, "repeat") && !strings.Contains(text, "now") {
			agree(t, text)
		}
	})
}

func TestATableOfPairsIsJSON(t *testing.T) {
	t.Parallel()

	e, err := expression.Parse(`fromPairs([["b", body.n], ["a", [1]], [3, nil]])`)
	if err != nil {
		t.Fatal(err)
	}

	var s expression.Scope

	s.Reset(message())

	v, err := e.Eval(&s)
	if err != nil {
		t.Fatal(err)
	}

	if got, err := v.AppendJSON(nil); err != nil || string(got) != `{"3":null,"a":[1],"b":7}` {
		t.Errorf("it is %s, %v", got, err)
	}
}
