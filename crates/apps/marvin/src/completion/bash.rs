//! The adapter for bash. Bash splits words at colons and equal signs, so the script joins them
//! before it asks Marvin, and removes what the user typed up to the last of them from each
//! candidate.

use std::ffi::OsString;
use std::io;
use std::path::Path;

use clap::Command;
use clap_complete::env::EnvCompleter;

#[derive(Debug)]
pub(super) struct Bash;

/// Candidates are separated by vertical tabs (IFS), as no word contains one.
const SCRIPT: &str = r#"
_marvin_complete() {
    local IFS=$'\013' line=$COMP_LINE space=true index=0 words=() i word
    if compopt +o nospace 2> /dev/null; then
        space=false
    fi
    for ((i = 0; i <= COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        # Adjacent words are one word that bash split.
        if [[ $i -gt 0 && $line != [[:space:]]* && ($word == [:=]* || ${words[index]} == *[:=]) ]]; then
            words[index]+=$word
        else
            ((i > 0)) && ((index++))
            words[index]=$word
        fi
        line=${line#*"$word"}
    done
    local typed=${words[index]}
    COMPREPLY=( $( \
        _CLAP_IFS="$IFS" _CLAP_COMPLETE_INDEX="$index" _CLAP_COMPLETE_COMP_TYPE="$COMP_TYPE" \
        _CLAP_COMPLETE_SPACE="$space" VAR=bash COMPLETER -- "${words[@]}" 2> /dev/null \
    ) )
    if [[ $? != 0 ]]; then
        unset COMPREPLY
        return
    fi
    if [[ $COMP_WORDBREAKS == *:* && $typed == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${typed%:*}:"}")
    elif [[ $COMP_WORDBREAKS == *=* && $typed == *=* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${typed%%=*}="}")
    fi
    if [[ $space == false && ${COMPREPLY-} =~ [=/:]$ ]]; then
        compopt -o nospace
    fi
}
if [[ "${BASH_VERSINFO[0]}" -eq 4 && "${BASH_VERSINFO[1]}" -ge 4 || "${BASH_VERSINFO[0]}" -gt 4 ]]; then
    complete -o nospace -o bashdefault -o default -o nosort -F _marvin_complete BIN
else
    complete -o nospace -o bashdefault -o default -F _marvin_complete BIN
fi
"#;

impl EnvCompleter for Bash {
    fn name(&self) -> &'static str {
        "bash"
    }

    fn is(&self, name: &str) -> bool {
        name == "bash"
    }

    fn write_registration(
        &self,
        var: &str,
        _: &str,
        bin: &str,
        completer: &str,
        buf: &mut dyn io::Write,
    ) -> io::Result<()> {
        let quoted = subprocess::quote_words([completer]);
        buf.write_all(
            SCRIPT
                .replace("VAR", var)
                .replace("BIN", bin)
                .replace("COMPLETER", &quoted)
                .as_bytes(),
        )
    }

    fn write_complete(
        &self,
        cmd: &mut Command,
        args: Vec<OsString>,
        current_dir: Option<&Path>,
        buf: &mut dyn io::Write,
    ) -> io::Result<()> {
        clap_complete::env::Bash.write_complete(cmd, args, current_dir, buf)
    }
}
