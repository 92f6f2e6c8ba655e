package remoting

import (
	"encoding/json"
	"maps"
	"reflect"
	"testing"
)

const usual = `{"code":0,"extFields":{"group":"G","maxOffset":"100000","minOffset":"0","nextBeginOffset":"32","offsetDelta":"0",` +
	`"suggestWhichBrokerId":"0","topicSysFlag":"0"},"flag":1,"language":"JAVA","opaque":17,"remark":"FOUND",` +
	`"serializeTypeCurrentRPC":"JSON","version":479}`

// FuzzFlat holds what reads and writes usual headers against encoding/json.
func FuzzFlat(f *testing.F) {
	for _, text := range []string{
		usual, `{"code":1,"remark":null,"extFields":null}`, `{"extFields":{}}`, `{"code":-0}`, `{"code":01}`, `{"code":--1}`, `{}`,
		`{"extFields":{"a":"b"},"extFields":{"c":"d"}}`, `{"extFields":{"a":"b"},"extFields":null}`, `{"opaque":2147483648}`,
		`{"code":1,}`, `{"code":1}}`, `{"code":}`, `{"remark":"\u00e9"}`, `{"remark":"é"}`, `{"Code":1}`, `{"code":1.0}`, `{"code":nullnull}`,
	} {
		f.Add([]byte(text))
	}

	f.Fuzz(func(t *testing.T, head []byte) {
		c, ok := readFlat(head)
		if !ok {
			return
		}

		var want header
		if err := json.Unmarshal(head, &want); err != nil {
			t.Fatalf("%q is read as %+v, and is no header: %v", head, c, err)
		}

		got := header{
			Code: c.Code, Language: c.Language, Version: c.Version, Opaque: c.Opaque, Flag: c.Flag, Remark: c.Remark, Ext: c.Ext,
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%q is read as %+v, and is %+v", head, got, want)
		}

		var again header
		if err := json.Unmarshal(appendHeader(nil, c), &again); err != nil {
			t.Fatalf("%+v is written as %q: %v", c, appendHeader(nil, c), err)
		}

		sameFields := maps.Equal(again.Ext, want.Ext) // none and an empty map are written alike
		if again.Ext, want.Ext = nil, nil; !sameFields || !reflect.DeepEqual(again, want) {
			t.Fatalf("%+v is written as %q", c, appendHeader(nil, c))
		}
	})
}

func TestUsualHeadersAreReadAndWrittenWithoutReflection(t *testing.T) {
	t.Parallel()

	c, ok := readFlat([]byte(usual))
	if !ok || c.Opaque != 17 || c.Remark != "FOUND" || len(c.Ext) != 7 || c.Ext["nextBeginOffset"] != "32" {
		t.Errorf("it is read as %+v, %v", c, ok)
	}
}

func BenchmarkHeader(b *testing.B) {
	c, _ := readFlat([]byte(usual))

	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()

		for b.Loop() {
			if _, err := decodeJSON([]byte(usual)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("write", func(b *testing.B) {
		b.ReportAllocs()

		for b.Loop() {
			if _, err := AppendFrame(nil, c); err != nil {
				b.Fatal(err)
			}
		}
	})
}
