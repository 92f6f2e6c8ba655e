package loosejson_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/loosejson"
)

func TestKeysBecomeStrings(t *testing.T) {
	t.Parallel()

	for loose, want := range map[string]string{
		`{"offsetTable":{{"queueId":0,"topic":"T"}:12,{"queueId":1}:-3}}`: `{"offsetTable":{"{\"queueId\":0,\"topic\":\"T\"}":12,` +
			`"{\"queueId\":1}":-3}}`,
		`{"brokerAddrs":{0:"127.0.0.1:10911", 1:"x"}}`: `{"brokerAddrs":{"0":"127.0.0.1:10911","1":"x"}}`,
		" {\n\t\"a\" : [ 1 , {2:true} , null ] }\r\n":  `{"a":[1,{"2":true},null]}`,
		`{"a":"}{,:\"\\"}`:   `{"a":"}{,:\"\\"}`,
		`{}`:                 `{}`,
		`{key:"1"}`:          `{"key":"1"}`,
		`{"t":0.0,"u":1e-9}`: `{"t":0.0,"u":1e-9}`,
	} {
		if got, err := loosejson.Strict([]byte(loose)); err != nil || string(got) != want {
			t.Errorf("%s became %s, %v; want %s", loose, got, err, want)
		}
	}
}

func TestWhatIsNoJSONIsRefused(t *testing.T) {
	t.Parallel()

	for _, bad := range []string{
		"", " ", "{", "}", "[1", "[1 2]", "[,]", `{"a"}`, `{"a":}`, `{"a":1,}`, `"open`, `"\`, "word", "{a:b}", "1 2",
		strings.Repeat("[", 100) + strings.Repeat("]", 100), strings.Repeat("{", 1<<20),
	} {
		if got, err := loosejson.Strict([]byte(bad)); !errors.Is(err, loosejson.ErrSyntax) {
			t.Errorf("%.20q became %s, %v", bad, got, err)
		}
	}
}

func FuzzStrict(f *testing.F) {
	f.Add([]byte(`{"offsetTable":{{"brokerName":"b","queueId":0,"topic":"T"}:12}}`))
	f.Add([]byte(`{0:[1,"\"",null,{"a":{}}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		out, err := loosejson.Strict(in)
		if err != nil {
			return
		}

		if !json.Valid(out) {
			t.Fatalf("%q became %q, which is no JSON", in, out)
		}

		if again, err := loosejson.Strict(out); err != nil || !bytes.Equal(again, out) {
			t.Fatalf("%q became %q, and that %q, %v", in, out, again, err)
		}
	})
}

func ExampleStrict() {
	strict, err := loosejson.Strict([]byte(`{"offsetTable":{{"queueId":0,"topic":"T"}:12}}`))
	fmt.Println(string(strict), err)
	// Output: {"offsetTable":{"{\"queueId\":0,\"topic\":\"T\"}":12}} <nil>
}
