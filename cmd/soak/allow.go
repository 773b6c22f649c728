package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sse-soak/sse-soak/internal/plan"
)

// allowActions returns an error if soak.yaml sets --at or --at-env, unless the user allows the commands with
// --allow-actions or at a prompt. A file passed with --config needs no permission, and --at-env without --at needs none.
func allowActions(cmd *cobra.Command, commands []string) error {
	fromFile := false
	for _, name := range []string{"at", "at-env"} {
		if flag := cmd.Flags().Lookup(name); flag != nil {
			_, isFromFile := flag.Annotations[plan.FromFile]
			fromFile = fromFile || isFromFile
		}
	}
	allowed, err := cmd.Flags().GetBool(plan.AllowActions)
	if err != nil || allowed || !fromFile || len(commands) == 0 || cmd.Flags().Changed("config") {
		return err
	}
	out := cmd.ErrOrStderr()
	fmt.Fprintf(out, "%s sets --at or --at-env. The run executes these commands on this machine:\n", plan.SettingsFile)
	for _, command := range commands {
		fmt.Fprintf(out, "  %q\n", command) // quoted, because control characters could hide part of the command
	}
	in, isFile := cmd.InOrStdin().(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return fmt.Errorf("%s contains commands or their environment (at:, at-env:), and there is no terminal to confirm them; pass --%s to allow them", plan.SettingsFile, plan.AllowActions)
	}
	fmt.Fprint(out, "Run them? [y/N] ")
	answer, err := bufio.NewReader(in).ReadString('\n')
	if answer = strings.ToLower(strings.TrimSpace(answer)); err != nil || answer != "y" && answer != "yes" {
		return errors.New("the commands in " + plan.SettingsFile + " were declined")
	}
	return nil
}
