package plugins_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/millrace/millrace/plugins"
)

func TestASecretPrintsAsStarsHoweverItIsPrinted(t *testing.T) {
	t.Parallel()

	var options struct {
		Token plugins.Secret `json:"token" option:"token"`
		None  plugins.Secret `json:"none"  option:"none"`
	}

	if err := plugins.Decode(map[string]any{"token": "open sesame"}, &options); err != nil {
		t.Fatal(err)
	}

	if got := options.Token.Reveal(); got != "open sesame" || options.None.String() != "" {
		t.Errorf("the secret is %q, none is %q", got, options.None)
	}

	encoded, err := json.Marshal(options)
	if err != nil {
		t.Fatal(err)
	}

	printed := string(encoded) + fmt.Sprintf("%v %+v %#v %s", options, options, options, options.Token)
	if strings.Contains(printed, "sesame") {
		t.Errorf("the secret is printed: %s", printed)
	}
}

func ExampleSecret() {
	fmt.Println("the token is", plugins.NewSecret("open sesame"))
	// Output: the token is ***
}
