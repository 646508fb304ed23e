# An agent that needs no model: what it does is written down here, how it does it is what any agent would do.
set -e
if [ -e .lattice/resume.json ]; then
    number=$(grep -o '"pr_number": *[0-9]*' .lattice/resume.json | grep -o '[0-9]*$')
    lattice emit info "Resumed: pull request #$number is open"
    lattice emit completed --status success --summary "The greeting is polite, and documented"
    exit 0
fi

lattice emit phase-started understand
lattice emit info "The issue: $(grep -m1 . .lattice/context/trigger.md)" --kind observation
lattice emit info "Last said: $(grep '^[A-Z]' .lattice/context/thread.md | tail -1)" --kind observation
lattice emit phase-finished understand --success true

lattice emit phase-started implement
mine=$(git branch --show-current)
echo 'echo "Good morning. What can I do for you?"' > greet.sh
git commit -q -a -m "Greet politely"
lattice emit info "1 of 2 commits" --kind progress
git switch -q -c usage
echo "greet.sh greets whoever comes." > USAGE
git add USAGE
git commit -q -m "Say what the greeting is for"
lattice emit info "2 of 2 commits" --kind progress
lattice emit phase-finished implement --success true

echo '$ git push origin HEAD'
git push origin HEAD || lattice emit info "I cannot push, so I ask for a pull request" --kind note

lattice emit action-request OPEN_PR --param title="Greet politely" --param body="Resolves #1" \
    --param base=main --param head="$mine" --blocking
checkpoint=$(lattice checkpoint)
lattice emit waiting --reason OPEN_PR --checkpoint "$checkpoint" --expect pr_number=integer --expect pr_url=string
