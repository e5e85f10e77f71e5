// Command login says whether franz-go is let in, or why not. The argument is JSON: the port, and as
// far as they are used files of PEM, a mechanism, a name and a password, and a token.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

const timeout = time.Minute

type loginOptions struct {
	Port      int
	Trusted   string
	Shown     string
	Mechanism string
	Username  string
	Password  string
	Token     string
}

func main() {
	var login loginOptions
	if err := json.Unmarshal([]byte(os.Args[1]), &login); err != nil {
		log.Fatal(err)
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(fmt.Sprintf("127.0.0.1:%d", login.Port)),
		kgo.DialTimeout(timeout),
		kgo.RequestRetries(0),
	}
	if login.Trusted != "" {
		config, err := login.tlsConfig()
		if err != nil {
			log.Fatal(err)
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	if login.Mechanism != "" {
		options = append(options, kgo.SASL(login.mechanism()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := client.Ping(ctx); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("let in")
}

func (login loginOptions) tlsConfig() (*tls.Config, error) {
	trusted, err := os.ReadFile(login.Trusted)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	config := &tls.Config{RootCAs: roots}
	if login.Shown != "" {
		shown, err := tls.LoadX509KeyPair(login.Shown, login.Shown)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{shown}
	}
	return config, nil
}

func (login loginOptions) mechanism() sasl.Mechanism {
	byPassword := scram.Auth{User: login.Username, Pass: login.Password}
	switch login.Mechanism {
	case "PLAIN":
		return plain.Auth{User: login.Username, Pass: login.Password}.AsMechanism()
	case "SCRAM-SHA-256":
		return byPassword.AsSha256Mechanism()
	case "SCRAM-SHA-512":
		return byPassword.AsSha512Mechanism()
	case "OAUTHBEARER":
		return oauth.Auth{Token: login.Token}.AsMechanism()
	}
	log.Fatalf("the mechanism %s is not known", login.Mechanism)
	return nil
}
