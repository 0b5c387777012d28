//! `prime-agents completions`: scripts that complete the command line in a shell.

use std::env;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Args;
use clap_complete::{Shell, generate};

use super::output::{note, print};
use prime_dataset::files::Whole;

#[derive(Args)]
pub struct CompletionsArguments {
    /// Shell to generate the script for [default with --install: that of the variable SHELL]
    #[arg(value_enum)]
    shell: Option<Shell>,
    /// Write the script where bash, fish or zsh of this user look for it
    #[arg(long)]
    install: bool,
}

pub fn completions(
    arguments: &CompletionsArguments,
    mut command: clap::Command,
) -> anyhow::Result<ExitCode> {
    if arguments.shell.is_none() && !arguments.install {
        bail!(
            "name a shell, whose script is then printed, or give --install, which writes it where \
             your shell looks for it"
        );
    }
    let Some(shell) = arguments.shell.or_else(Shell::from_env) else {
        bail!("--install: the variable SHELL names no shell that is known here: name it");
    };
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    generate(shell, &mut command, &name, &mut script);

    let mut script = String::from_utf8(script)?;
    if shell == Shell::Bash {
        script = with_matching_labels(&script, &name);
        script = with_joined_values(&script);
    }

    if arguments.install {
        install(shell, &name, &script)?;
    } else {
        print(script)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes a script where the shell looks for it, and says what is left to do.
fn install(shell: Shell, name: &str, script: &str) -> anyhow::Result<()> {
    let variable = |name: &str| {
        let path = env::var_os(name).map(PathBuf::from);
        // As the XDG specification asks: a relative path counts as none.
        path.filter(|path| path.is_absolute())
    };
    let Some((folder, file)) = place(shell, name, variable)? else {
        bail!(
            "--install: {shell} has no folder for completions: write `prime-agents completions \
             {shell}` into a file that its start-up script reads"
        );
    };

    let path = folder.join(file);
    let failed = || format!("--install: {}", path.display());
    std::fs::create_dir_all(&folder).with_context(failed)?;
    let written = Whole::uncompressed(&path).and_then(|mut file| {
        file.write_all(script.as_bytes())?;
        file.finish()
    });
    written.with_context(failed)?;
    note!("{}: written; the next {shell} reads it", path.display());
    match shell {
        Shell::Bash => note!("bash needs the package bash-completion"),
        Shell::Zsh => note!(
            "if ~/.zshrc does not name the folder yet, put this before its `compinit`: \
             fpath=({} $fpath)",
            shlex::try_quote(&folder.to_string_lossy()).unwrap_or_default()
        ),
        _ => {}
    }
    Ok(())
}

/// Where a shell looks for a user's completions; `None` if it looks nowhere.
///
/// # Errors
/// The user has no home.
fn place(
    shell: Shell,
    name: &str,
    variable: impl Fn(&str) -> Option<PathBuf>,
) -> anyhow::Result<Option<(PathBuf, String)>> {
    let below = |base: &str, default: &str, rest: &str| {
        let home = || Some(variable("HOME")?.join(default));
        let base = variable(base).or_else(home).context("--install: HOME names no folder")?;
        anyhow::Ok(base.join(Path::new(rest)))
    };
    Ok(Some(match shell {
        Shell::Bash => match variable("BASH_COMPLETION_USER_DIR") {
            Some(folder) => (folder.join("completions"), name.to_owned()),
            None => {
                let rest = "bash-completion/completions";
                (below("XDG_DATA_HOME", ".local/share", rest)?, name.to_owned())
            }
        },
        Shell::Fish => {
            let folder = below("XDG_CONFIG_HOME", ".config", "fish/completions")?;
            (folder, format!("{name}.fish"))
        }
        Shell::Zsh => {
            let folder = below("XDG_DATA_HOME", ".local/share", "zsh/site-functions")?;
            (folder, format!("_{name}"))
        }
        _ => return Ok(None),
    }))
}

/// The generator sets a label for each subcommand and later branches on it, but escapes the hyphen
/// of the program's name differently in the two places, so that no subcommand would be completed.
fn with_matching_labels(script: &str, name: &str) -> String {
    let branch = format!("{}__subcmd__", name.replace('-', "__subcmd__"));
    let label = format!("{}__subcmd__", name.replace('-', "__"));
    script.replace(&branch, &label)
}

/// The generator looks at the word before the one that is completed. Bash splits `--option=value`
/// into three words, so that word is `=`.
fn with_joined_values(script: &str) -> String {
    const BEFORE: &str = "    prev=\"$3\"\n";
    const JOIN: &str = r#"    if [[ "${COMP_CWORD}" -ge 2 && "${prev}" == "=" ]]; then
        prev="${COMP_WORDS[COMP_CWORD-2]}"
    elif [[ "${cur}" == "=" && "${prev}" == --* ]]; then
        cur=""
    fi
"#;
    script.replacen(BEFORE, &format!("{BEFORE}{JOIN}"), 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_go_where_shells_look() {
        let with = |known: &'static [(&str, &str)]| {
            move |name: &str| {
                let path = known.iter().find(|(known, _)| *known == name);
                path.map(|(_, path)| PathBuf::from(path))
            }
        };
        let at = |shell, known| {
            let (folder, file) = place(shell, "p", with(known)).unwrap().unwrap();
            folder.join(file).display().to_string()
        };
        const HOME: &[(&str, &str)] = &[("HOME", "/h")];
        assert_eq!(at(Shell::Bash, HOME), "/h/.local/share/bash-completion/completions/p");
        assert_eq!(at(Shell::Zsh, HOME), "/h/.local/share/zsh/site-functions/_p");
        assert_eq!(at(Shell::Fish, HOME), "/h/.config/fish/completions/p.fish");

        const MOVED: &[(&str, &str)] = &[
            ("XDG_DATA_HOME", "/d"),
            ("XDG_CONFIG_HOME", "/c"),
            ("BASH_COMPLETION_USER_DIR", "/b"),
        ];
        assert_eq!(at(Shell::Bash, MOVED), "/b/completions/p");
        assert_eq!(at(Shell::Zsh, MOVED), "/d/zsh/site-functions/_p");
        assert_eq!(at(Shell::Fish, MOVED), "/c/fish/completions/p.fish");

        assert!(place(Shell::Elvish, "p", with(HOME)).unwrap().is_none());
        assert!(place(Shell::Fish, "p", with(&[])).is_err());
    }
}
