package remoting_test

import (
	"maps"
	"testing"

	"github.com/millrace/millrace/consumer/rocketmq/remoting"
)

func TestSignaturesAreThoseOfTheVectors(t *testing.T) {
	t.Parallel()

	user := remoting.Credentials{AccessKey: "rocketmq2", SecretKey: "12345678"}
	given := map[string]string{"topic": "T", "consumerGroup": "G", "queueId": "0"}

	// The first is the protocol's own vector; the others were computed with openssl from the content in the comment.
	for name, c := range map[string]struct {
		user remoting.Credentials
		ext  map[string]string
		body string
		want string
	}{
		"fields": {user, given, "", "tf9Vkly+iwU3wyXsab8BIOeIbGE="},
		"a body": {user, given, "body", "vGgiB7S2Jo9JDcS1zX1+OxrCFm8="}, // rocketmq2G0Tbody
		"a token": {
			remoting.Credentials{AccessKey: "rocketmq2", SecretKey: "12345678", SecurityToken: "sts"},
			given, "", "HBSBoYZNterxFDA1GwfGbF9r/yk=", // rocketmq2stsG0T
		},
		"a signature of before": {user, map[string]string{"Signature": "old"}, "", "Ou1T58RIcyZWaTIwzkhJZWn/Zvs="}, // rocketmq2
		"no field":              {user, nil, "", "Ou1T58RIcyZWaTIwzkhJZWn/Zvs="},                                   // rocketmq2
	} {
		before := maps.Clone(c.ext)

		signed := c.user.Sign(c.ext, []byte(c.body))
		if signed["Signature"] != c.want || signed["AccessKey"] != "rocketmq2" || signed["SecurityToken"] != c.user.SecurityToken {
			t.Errorf("%s: %v, want the signature %s", name, signed, c.want)
		}

		if !maps.Equal(before, c.ext) {
			t.Errorf("%s: the argument was changed to %v", name, c.ext)
		}
	}
}
