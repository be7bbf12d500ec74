<?php
namespace Reelgate;

defined( 'ABSPATH' ) || exit;

/** Settings of the hosted service's plug-in that have a meaning here, and ours that they become. */
const IMPORTED = array(
	'vdo_default_width'  => 'width',
	'vdo_default_height' => 'height',
	'vdo_annotate_code'  => 'watermark',
	'vdo_player_speed'   => 'speeds',
);

function register_settings() {
	register_setting( 'reelgate', OPTION, array( 'type' => 'array', 'sanitize_callback' => __NAMESPACE__ . '\\clean_options', 'show_in_rest' => false ) );
}

function add_settings_page() {
	add_options_page( 'Reelgate', 'Reelgate', 'manage_options', 'reelgate', __NAMESPACE__ . '\\show_settings_page' );
}

function link_to_settings( $links ) {
	$link = sprintf( '<a href="%s">%s</a>', esc_url( admin_url( 'options-general.php?page=reelgate' ) ), esc_html__( 'Settings', 'reelgate' ) );
	return array_merge( array( $link ), $links );
}

/** What is saved of a form: a field that is wrong keeps its value, with a sentence. */
function clean_options( $form ) {
	$form  = (array) $form;
	$saved = array_merge( DEFAULTS, (array) get_option( OPTION, array() ) );
	$clean = $saved;
	if ( isset( $form['server'] ) && '' !== trim( $form['server'] ) && '' === clean_server( $form['server'] ) ) {
		refuse_setting( 'server', __( 'The address of the server begins with https:// and has no query, such as https://video.example.org.', 'reelgate' ) );
	} elseif ( isset( $form['server'] ) ) {
		$clean['server'] = clean_server( $form['server'] );
	}
	// Never shown again, so an empty field keeps it. With another server it is not kept: it would be sent there.
	if ( isset( $form['secret'] ) && '' !== trim( $form['secret'] ) ) {
		$clean['secret'] = trim( $form['secret'] );
	} elseif ( $clean['server'] !== $saved['server'] && '' !== $saved['server'] ) {
		$clean['secret'] = '';
		refuse_setting( 'secret', __( 'The server is another one: enter its API secret.', 'reelgate' ) );
	}
	if ( isset( $form['watermark'] ) ) {
		$text = trim( $form['watermark'] );
		if ( '' === $text || is_array( json_decode( $text, true ) ) ) {
			$clean['watermark'] = $text;
		} else {
			refuse_setting( 'watermark', __( 'The watermark is no JSON, so the former one is kept. It is a list such as [{"type":"rtext","text":"{name}"}].', 'reelgate' ) );
		}
	}
	if ( isset( $form['width'] ) ) {
		$clean['width'] = length_of( $form['width'] ) ?? DEFAULTS['width'];
	}
	if ( isset( $form['height'] ) ) {
		$clean['height'] = length_of( $form['height'] ) ?? 'auto';
	}
	if ( isset( $form['speeds'] ) ) {
		$clean['speeds'] = preg_match( '/^[0-9., ]{0,80}$/D', $form['speeds'] ) ? str_replace( ' ', '', $form['speeds'] ) : '';
	}
	if ( isset( $form['form'] ) ) {
		$clean['take_over'] = ! empty( $form['take_over'] );
	} elseif ( isset( $form['take_over'] ) ) {
		$clean['take_over'] = (bool) $form['take_over'];
	}
	return array_intersect_key( $clean, DEFAULTS );
}

function refuse_setting( $field, $sentence ) {
	add_settings_error( OPTION, 'reelgate_' . $field, $sentence );
}

/** What the hosted service's plug-in has left in this site, as our settings; nothing that is empty. */
function found_settings() {
	$found = array();
	foreach ( IMPORTED as $theirs => $ours ) {
		$value = get_option( $theirs, '' );
		if ( is_scalar( $value ) && '' !== trim( (string) $value ) ) {
			$found[ $ours ] = (string) $value;
		}
	}
	return $found;
}

/** The test of the form's values, before they are saved. */
function answer_test() {
	check_ajax_referer( 'reelgate_test' );
	if ( ! current_user_can( 'manage_options' ) ) {
		wp_send_json( array( 'message' => __( 'You may not do this.', 'reelgate' ) ), 403 );
	}
	$options = options();
	$server  = clean_server( wp_unslash( $_POST['server'] ?? '' ) );
	$secret  = trim( (string) wp_unslash( $_POST['secret'] ?? '' ) );
	if ( '' === $secret && $server !== clean_server( $options['server'] ) ) {
		wp_send_json( array( array( 'ok' => false, 'text' => __( 'The server is another one: enter its API secret.', 'reelgate' ) ) ) );
	}
	wp_send_json( test_connection( array( 'server' => $server, 'secret' => '' === $secret ? $options['secret'] : $secret ) ) );
}

function show_settings_page() {
	if ( ! current_user_can( 'manage_options' ) ) {
		return;
	}
	if ( isset( $_POST['reelgate_import'] ) ) {
		check_admin_referer( 'reelgate_import' );
		update_option( OPTION, clean_options( found_settings() ) );
	}
	$options = options();
	$found   = found_settings();
	$field   = static function ( $name, $label, $hint, $type = 'text', $value = null ) use ( $options ) {
		printf(
			'<tr><th scope="row"><label for="reelgate-%1$s">%2$s</label></th><td><input class="regular-text" type="%3$s" id="reelgate-%1$s" name="reelgate[%1$s]" value="%4$s" autocomplete="off"%6$s><p class="description">%5$s</p></td></tr>',
			esc_attr( $name ),
			esc_html( $label ),
			esc_attr( $type ),
			esc_attr( $value ?? $options[ $name ] ),
			esc_html( $hint ),
			disabled( is_constant( $name ), true, false )
		);
	};
	?>
	<div class="wrap">
	<h1>Reelgate</h1>
	<?php settings_errors( OPTION ); ?>
	<form method="post" action="options.php">
	<?php settings_fields( 'reelgate' ); ?>
	<input type="hidden" name="reelgate[form]" value="1">
	<table class="form-table" role="presentation">
	<?php
	$field( 'server', __( 'Address of your server', 'reelgate' ), __( 'Such as https://video.example.org.', 'reelgate' ), 'url' );
	$field(
		'secret',
		__( 'API secret', 'reelgate' ),
		'' === $options['secret']
			? __( 'Make a key in the console under Develop → API keys, with Issue OTPs, Read and Upload; Change and delete as well if a request to erase a user is to erase what they watched.', 'reelgate' )
			: __( 'Saved. It is not shown again; leave this empty to keep it.', 'reelgate' ),
		'password',
		''
	);
	?>
	<tr><th scope="row"></th><td>
		<button type="button" class="button" id="reelgate-test"><?php esc_html_e( 'Test the connection', 'reelgate' ); ?></button>
		<ul id="reelgate-test-results" role="status"></ul>
	</td></tr>
	<tr><th scope="row"><label for="reelgate-watermark"><?php esc_html_e( 'Watermark', 'reelgate' ); ?></label></th><td>
		<textarea class="large-text code" rows="4" id="reelgate-watermark" name="reelgate[watermark]"><?php echo esc_textarea( $options['watermark'] ); ?></textarea>
		<p class="description"><?php esc_html_e( 'A list as JSON; empty: none. {name}, {email}, {username} and {id} are those of the signed-in user and empty for others; {ip} is the address, {date.Y-m-d} the day in the time of this site.', 'reelgate' ); ?></p>
	</td></tr>
	<?php
	$field( 'width', __( 'Greatest width', 'reelgate' ), __( 'In pixels, where a video does not say its own.', 'reelgate' ), 'number' );
	$field( 'height', __( 'Height', 'reelgate' ), __( 'In pixels, or auto: as the video is.', 'reelgate' ) );
	$field( 'speeds', __( 'Speeds', 'reelgate' ), __( 'To choose from, such as 0.75,1,1.25,1.5. Empty: the player’s own.', 'reelgate' ) );
	?>
	<tr><th scope="row"><?php esc_html_e( 'Posts of the hosted service', 'reelgate' ); ?></th><td><label>
		<input type="checkbox" name="reelgate[take_over]" value="1"<?php checked( $options['take_over'] ); ?>>
		<?php esc_html_e( 'Play [vdo] and its block from this server, even while the other plug-in is active. Without it they are played as soon as that plug-in is not.', 'reelgate' ); ?>
	</label></td></tr>
	</table>
	<?php submit_button(); ?>
	</form>
	<?php if ( array() !== $found ) : ?>
	<h2><?php esc_html_e( 'Settings of the other plug-in', 'reelgate' ); ?></h2>
	<p><?php esc_html_e( 'These were found. Its key and its themes are of no use here.', 'reelgate' ); ?></p>
	<table class="widefat striped" style="max-width:60em"><tbody>
		<?php foreach ( $found as $ours => $value ) : ?>
		<tr><td><?php echo esc_html( $ours ); ?></td><td><code><?php echo esc_html( $value ); ?></code></td></tr>
		<?php endforeach; ?>
	</tbody></table>
	<form method="post"><?php wp_nonce_field( 'reelgate_import' ); ?>
	<p><button class="button" name="reelgate_import" value="1"><?php esc_html_e( 'Take them over', 'reelgate' ); ?></button></p></form>
	<?php endif; ?>
	</div>
	<script>
	document.getElementById('reelgate-test').addEventListener('click', async function () {
		const list = document.getElementById('reelgate-test-results')
		const body = new URLSearchParams({ action: 'reelgate_test', _ajax_nonce: <?php echo wp_json_encode( wp_create_nonce( 'reelgate_test' ) ); ?> })
		for (const name of ['server', 'secret']) body.set(name, document.getElementById(`reelgate-${name}`).value)
		list.replaceChildren('…')
		const answer = await fetch(ajaxurl, { method: 'POST', body }).then((reply) => reply.json(), () => undefined)
		const results = Array.isArray(answer) ? answer : [{ ok: false, text: (answer && answer.message) || <?php echo wp_json_encode( __( 'This page has been open for too long. Reload it, then test again.', 'reelgate' ), JSON_HEX_TAG ); ?> }]
		list.replaceChildren(...results.map(({ ok, text }) => {
			const item = document.createElement('li')
			item.textContent = `${ok ? '✓' : '✗'} ${text}`
			return item
		}))
	})
	</script>
	<?php
}
